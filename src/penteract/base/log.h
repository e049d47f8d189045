// Lines for people, on stderr: stdout belongs to results. Warnings begin with "warning:", errors with "error:". What
// could steer a terminal is written as \xNN: lines hold text of files. Thread-safety: any thread; lines never mix.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "penteract/base/result.h"

namespace penteract {

enum class LogLevel { debug, info, warning, error };

// Below this level nothing is written. Set once by main, before threads start.
void set_log_level(LogLevel level);
void log_line(LogLevel level, const std::string& text);

// As long as it lives, the lines of the thread that opened it, of every level, go to the end of a file too, each with
// its time (UTC). Not synced, and a line that cannot be written is lost: a log ends no run. One thread's.
class LogFile {
 public:
  static Result<std::unique_ptr<LogFile>> open(const std::string& path);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  void write(const std::string& text);  // a line for the file alone

 private:
  explicit LogFile(int fd);
  int fd_;
  LogFile* before_;  // of the thread
};

template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace penteract
