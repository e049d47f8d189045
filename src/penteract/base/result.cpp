#include "penteract/base/result.h"

#include <fmt/format.h>

namespace penteract {

const char* error_name(ErrorCode code) {
  switch (code) {
#define PENT_ERROR(name, number, exit) \
  case ErrorCode::name:                \
    return #name;
#include "penteract/base/error_codes.def"
#undef PENT_ERROR
  }
  return "unknown";
}

ExitCode exit_code(ErrorCode code) {
  switch (code) {
#define PENT_ERROR(name, number, exit) \
  case ErrorCode::name:                \
    return ExitCode::exit;
#include "penteract/base/error_codes.def"
#undef PENT_ERROR
  }
  return ExitCode::defect;
}

std::string Error::message() const {
  std::string text = culprit.empty() ? what : fmt::format("{}: {}", culprit, what);
  text += fmt::format(" [{} {}]", error_name(code), static_cast<int>(code));
  if (!remedy.empty()) text += fmt::format("\n  {}", remedy);
  return text;
}

void or_throw(Status status) {
  if (!status.ok()) throw ErrorException(status.take_error());
}

}  // namespace penteract
