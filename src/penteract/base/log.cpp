#include "penteract/base/log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <ctime>
#include <utility>

#include "penteract/base/file.h"
#include "penteract/base/text.h"

namespace penteract {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::err;
}

// spdlog's own registry is the process's one log; it is made on first use and is safe from any thread.
spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> log = [] {
    auto made = std::make_shared<spdlog::logger>("penteract", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%v");
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *log;
}

thread_local LogFile* t_log_file = nullptr;

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(level_of(level)); }

void log_line(LogLevel level, const std::string& text) {
  const char* prefix = level == LogLevel::warning ? "warning: " : level == LogLevel::error ? "error: " : "";
  const std::string line = prefix + printable(text);
  logger().log(level_of(level), "{}", line);
  if (t_log_file != nullptr) t_log_file->write(line);
}

Result<std::unique_ptr<LogFile>> LogFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return errno_error(ErrorCode::storage_write, path, "open");
  return std::unique_ptr<LogFile>(new LogFile(fd));
}
LogFile::LogFile(int fd) : fd_(fd), before_(std::exchange(t_log_file, this)) {}
LogFile::~LogFile() {
  t_log_file = before_;
  ::close(fd_);
}

void LogFile::write(const std::string& text) {
  const std::time_t now = std::time(nullptr);
  const std::string line = fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {}\n", fmt::gmtime(now), text);
  [[maybe_unused]] const ssize_t written = ::write(fd_, line.data(), line.size());
}

}  // namespace penteract
