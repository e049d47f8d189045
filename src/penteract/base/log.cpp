#include "penteract/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

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

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(level_of(level)); }

void log_line(LogLevel level, const std::string& text) {
  const char* prefix = level == LogLevel::warning ? "warning: " : level == LogLevel::error ? "error: " : "";
  logger().log(level_of(level), "{}{}", prefix, text);
}

}  // namespace penteract
