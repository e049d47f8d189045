#include "penteract/base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace penteract {
namespace {

// Known answers of Random123's own test file (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  using Four = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Initial weights are bit-equal in every layout only when any split of a range gives the same values (userlog E8).
TEST(NormalRange, AnySplitGivesTheSameValues) {
  const auto key = philox_key(1, "init x");
  std::vector<double> whole(101);
  normal_range(key, 0, 101, whole.data());
  for (int64_t cut = 0; cut <= 101; ++cut) {
    std::vector<double> parts(101);
    normal_range(key, 0, cut, parts.data());
    normal_range(key, cut, 101 - cut, parts.data() + cut);
    ASSERT_EQ(parts, whole) << cut;
  }
}

TEST(NormalRange, HasTheMomentsOfANormalDistribution) {
  const int64_t n = 200000;
  std::vector<double> x(n);
  normal_range(philox_key(3, "moments"), 5, n, x.data());
  double m1 = 0, m2 = 0, m4 = 0;
  for (double v : x) m1 += v, m2 += v * v, m4 += v * v * v * v;
  // Five standard errors: sqrt(1/n), sqrt(2/n), sqrt(96/n).
  EXPECT_NEAR(m1 / n, 0, 5 * std::sqrt(1.0 / n));
  EXPECT_NEAR(m2 / n, 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(m4 / n, 3, 5 * std::sqrt(96.0 / n));
}

TEST(PhiloxKey, DiffersByPurposeAndSeed) {
  EXPECT_NE(philox_key(1, "a"), philox_key(1, "b"));
  EXPECT_NE(philox_key(1, "a"), philox_key(2, "a"));
}

TEST(PermuteIndex, IsABijectionForEverySize) {
  for (uint64_t n : {1, 2, 3, 5, 16, 17, 100, 1000}) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < n; ++i) seen.insert(permute_index(philox_key(4, "epoch 0"), n, i));
    EXPECT_EQ(seen.size(), n);
    EXPECT_EQ(*seen.rbegin(), n - 1);
  }
}

TEST(PermuteIndex, EpochsDiffer) {
  int same = 0;
  for (uint64_t i = 0; i < 1000; ++i)
    same += permute_index(philox_key(4, "epoch 0"), 1000, i) == permute_index(philox_key(4, "epoch 1"), 1000, i);
  EXPECT_LT(same, 20);
}

}  // namespace
}  // namespace penteract
