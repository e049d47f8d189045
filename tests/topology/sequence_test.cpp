#include "penteract/topology/sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace penteract::topology {
namespace {

Layout layout_of(int cp, int tp, bool sp) {
  Layout l;
  l.cp = cp, l.tp = tp, l.sp = sp;
  return l;
}

TEST(PaddedLength, IsTheLeastMultipleOfTheAxes) {
  EXPECT_EQ(padded_length(layout_of(1, 1, false), 7), 7);
  EXPECT_EQ(padded_length(layout_of(2, 1, false), 7), 8);
  EXPECT_EQ(padded_length(layout_of(2, 3, true), 7), 12);  // lcm(4, 6)
  EXPECT_EQ(padded_length(layout_of(2, 3, false), 7), 8);
  EXPECT_EQ(padded_length(layout_of(4, 2, true), 256), 256);
}

TEST(LocalPositions, CoverTheSequenceOnceAndZigzag) {
  for (int cp : {1, 2, 3, 4}) {
    for (int tp : {1, 2, 4}) {
      for (bool sp : {false, true}) {
        const Layout l = layout_of(cp, tp, sp && tp > 1);
        const int64_t padded = padded_length(l, 29);
        std::vector<int64_t> seen;
        for (int c = 0; c < cp; ++c) {
          for (int t = 0; t < (l.sp ? tp : 1); ++t) {
            const auto part = local_positions(l, c, t, padded);
            seen.insert(seen.end(), part.begin(), part.end());
          }
        }
        std::sort(seen.begin(), seen.end());
        std::vector<int64_t> all(padded);
        std::iota(all.begin(), all.end(), 0);
        EXPECT_EQ(seen, all);
      }
    }
  }
  const auto ranges = context_ranges(2, 0, 8);
  EXPECT_EQ(ranges, (std::vector<Range>{{0, 2}, {6, 2}}));
  EXPECT_EQ(context_ranges(2, 1, 8), (std::vector<Range>{{2, 2}, {4, 2}}));
}

}  // namespace
}  // namespace penteract::topology
