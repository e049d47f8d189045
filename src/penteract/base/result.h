// What a user can cause is returned, never thrown: Error, Result<T>, Status.
// An Error says what was wrong, where (culprit: file, key, tensor, rank) and what to do (remedy).
// Thread-safety: values; no shared state.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace penteract {

// The exit codes of the program. Documented in docs/exit-codes.md; scripts rely on them.
enum class ExitCode : int {
  done = 0,
  defect = 1,
  usage = 2,
  input = 3,
  layout = 4,
  comm = 5,
  nonfinite = 6,
  proof = 7,
  storage = 8,
  stopped = 75,
};

enum class ErrorCode : int {
#define PENT_ERROR(name, number, exit) name = number,
#include "penteract/base/error_codes.def"
#undef PENT_ERROR
};

// The name in the table, for example "recipe_key".
const char* error_name(ErrorCode code);
ExitCode exit_code(ErrorCode code);

struct Error {
  ErrorCode code;
  std::string what;     // what is wrong, with the values seen and expected
  std::string culprit;  // file:line, key, tensor, rank; may be empty
  std::string remedy;   // what to do; may be empty

  // One message: "culprit: what (name 1234)\n  remedy".
  std::string message() const;
};

// Either a value or an Error. Reading the wrong side throws std::bad_variant_access (a defect of ours).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<1>(state_); }
  Error take_error() { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return error_.value(); }
  Error take_error() { return std::move(error_).value(); }

 private:
  std::optional<Error> error_;
};

// Carries an Error up through code that cannot return one (rank threads, backward). Caught at thread roots.
class ErrorException : public std::exception {
 public:
  explicit ErrorException(Error error) : error_(std::move(error)), text_(error_.message()) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const Error& error() const { return error_; }

 private:
  Error error_;
  std::string text_;
};

// Throws the error of a failed Result or Status: for rank code below a thread root.
template <class T>
T or_throw(Result<T> result) {
  if (!result.ok()) throw ErrorException(result.take_error());
  return std::move(result).value();
}
void or_throw(Status status);

}  // namespace penteract

#define PENT_CONCAT_(a, b) a##b
#define PENT_CONCAT(a, b) PENT_CONCAT_(a, b)

// Returns the error of a Status to the caller.
#define PENT_TRY(expr)                                                                 \
  do {                                                                                 \
    if (auto pent_status = (expr); !pent_status.ok()) return pent_status.take_error(); \
  } while (false)

// Assigns the value of a Result, or returns its error to the caller: PENT_ASSIGN(auto x, f());
#define PENT_ASSIGN(lhs, expr) PENT_ASSIGN_(PENT_CONCAT(pent_result_, __LINE__), lhs, expr)
#define PENT_ASSIGN_(tmp, lhs, expr)      \
  auto tmp = (expr);                      \
  if (!tmp.ok()) return tmp.take_error(); \
  lhs = std::move(tmp).value()
