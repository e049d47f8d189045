// Checks for our own bugs: always on, print the values and the rank, throw CheckFailure.
// What a user can cause is a Result instead (result.h).
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace penteract {

class CheckFailure : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// The rank of this thread, for messages, logs and the memory ledger; -1 outside rank threads.
int current_rank();
void set_current_rank(int rank);

[[noreturn]] void check_failed(const char* file, int line, const char* expression, const std::string& detail);

}  // namespace penteract

#define PENT_CHECK(cond, ...)                                                              \
  do {                                                                                     \
    if (!(cond)) [[unlikely]]                                                              \
      ::penteract::check_failed(__FILE__, __LINE__, #cond, ::fmt::format("" __VA_ARGS__)); \
  } while (false)

#define PENT_CHECK_OP_(a, b, op)                                                 \
  do {                                                                           \
    const auto& pent_a = (a);                                                    \
    const auto& pent_b = (b);                                                    \
    if (!(pent_a op pent_b)) [[unlikely]]                                        \
      ::penteract::check_failed(__FILE__, __LINE__, #a " " #op " " #b,           \
                                ::fmt::format("{} against {}", pent_a, pent_b)); \
  } while (false)
#define PENT_CHECK_EQ(a, b) PENT_CHECK_OP_(a, b, ==)
#define PENT_CHECK_LT(a, b) PENT_CHECK_OP_(a, b, <)
#define PENT_CHECK_LE(a, b) PENT_CHECK_OP_(a, b, <=)
#define PENT_CHECK_GE(a, b) PENT_CHECK_OP_(a, b, >=)
