// Rotary frequencies against the formula of Llama 3.1's reference code, written down a second time in long double.
#include "penteract/spec/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace penteract::spec {
namespace {

TEST(Rope, PlainFrequencies) {
  ModelSpec m;
  m.head_dim = 8;
  m.rope_theta = 1e4;
  const auto f = rope_frequencies(m);
  ASSERT_EQ(f.size(), 4u);
  const double expected[] = {1, 0.1, 0.01, 0.001};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(f[i], expected[i], 1e-15 * expected[i] * 4);
}

// Llama 3.1: theta 500000, head 128, factor 8, 1 and 4, 8192.
TEST(Rope, Llama3KeepsShortWavesBlendsMiddleAndStretchesLong) {
  ModelSpec m;
  m.head_dim = 128;
  m.rope_theta = 5e5;
  m.llama3_rope = {8, 1, 4, 8192};
  const auto f = rope_frequencies(m);
  int kept = 0, blended = 0, stretched = 0;
  for (int i = 0; i < 64; ++i) {
    const long double plain = std::pow(5e5L, -i / 64.0L), turns = 8192 * plain / (2 * 3.14159265358979323846L);
    long double expected = plain;
    if (turns < 1) {
      expected = plain / 8, ++stretched;
    } else if (turns <= 4) {
      const long double share = (turns - 1) / 3;  // of the plain frequency
      expected = share * plain + (1 - share) * plain / 8, ++blended;
    } else {
      ++kept;
    }
    EXPECT_NEAR(f[i] / static_cast<double>(expected), 1, 1e-14) << i;
  }
  EXPECT_GT(kept, 20);
  EXPECT_GT(blended, 3);
  EXPECT_GT(stretched, 20);
  EXPECT_EQ(kept + blended + stretched, 64);
}

}  // namespace
}  // namespace penteract::spec
