// Lines for people, on stderr: stdout belongs to results. Warnings begin with "warning:", errors with "error:".
// Thread-safety: any thread; lines never mix.
#pragma once

#include <fmt/format.h>

#include <string>

namespace penteract {

enum class LogLevel { debug, info, warning, error };

// Below this level nothing is written. Set once by main, before threads start.
void set_log_level(LogLevel level);
void log_line(LogLevel level, const std::string& text);

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
