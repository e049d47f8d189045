#include "penteract/base/result.h"

#include <gtest/gtest.h>

#include <map>

#include "penteract/base/check.h"

namespace penteract {
namespace {

TEST(Errors, NumbersAreUniqueAndEachHasAnExitCode) {
  std::map<int, std::string> seen;
#define PENT_ERROR(name, number, exit)                                \
  EXPECT_TRUE(seen.emplace(number, #name).second) << #name << number; \
  EXPECT_EQ(exit_code(ErrorCode::name), ExitCode::exit);              \
  EXPECT_STREQ(error_name(ErrorCode::name), #name);
#include "penteract/base/error_codes.def"
#undef PENT_ERROR
}

TEST(Errors, MessageHasCulpritWhatNumberAndRemedy) {
  const Error error{ErrorCode::recipe_key, "unknown key", "r.toml:3: train.stepz", "did you mean \"steps\"?"};
  EXPECT_EQ(error.message(), "r.toml:3: train.stepz: unknown key [recipe_key 3002]\n  did you mean \"steps\"?");
}

Result<int> half(int x) {
  if (x % 2) return Error{ErrorCode::invalid_argument, "odd", "", ""};
  return x / 2;
}
Result<int> quarter(int x) {
  PENT_ASSIGN(const int h, half(x));
  return half(h);
}

TEST(Results, PassErrorsUp) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_FALSE(quarter(6).ok());
  EXPECT_THROW(or_throw(quarter(7)), ErrorException);
}

TEST(Checks, PrintValuesAndRank) {
  set_current_rank(3);
  try {
    PENT_CHECK_EQ(1 + 1, 3);
    FAIL();
  } catch (const CheckFailure& e) {
    EXPECT_NE(std::string(e.what()).find("rank 3"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("2 against 3"), std::string::npos);
  }
  set_current_rank(-1);
}

}  // namespace
}  // namespace penteract
