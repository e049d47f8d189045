// The seed of tests that draw at random: PENT_TEST_SEED where the environment has it, else a fixed one, so that every
// run draws the same. A test shows it on failure: SCOPED_TRACE(fmt::format("PENT_TEST_SEED={} draw {}", …)).
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "penteract/base/check.h"

namespace penteract::testing {

inline uint64_t test_seed() {
  const char* text = std::getenv("PENT_TEST_SEED");
  if (text == nullptr) return 20240607;
  const std::string_view digits = text;
  uint64_t seed = 0;
  const auto [end, ec] = std::from_chars(digits.begin(), digits.end(), seed);
  PENT_CHECK(ec == std::errc() && end == digits.end() && !digits.empty(),
             "PENT_TEST_SEED=\"{}\": expected a whole number below 2^64", digits);
  return seed;
}

}  // namespace penteract::testing
