#include "penteract/topology/slice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "penteract/base/rng.h"

namespace penteract::topology {
namespace {

// Brute force: the flat indices of a slice in row-major order.
std::vector<int64_t> flat_indices(const std::vector<int64_t>& shape, const Slice& s) {
  std::vector<int64_t> out;
  const int64_t total = Slice::whole(shape).num_elements();
  for (int64_t i = 0; i < total; ++i) {
    int64_t rest = i;
    bool inside = true;
    for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d) {
      const int64_t x = rest % shape[d];
      rest /= shape[d];
      inside &= x >= s.offset[d] && x < s.offset[d] + s.size[d];
    }
    if (inside) out.push_back(i);
  }
  return out;
}

TEST(SlicesOfFlatRange, CoverTheRangeInOrderWithAtMost2dMinus1) {
  for (const auto& shape : std::vector<std::vector<int64_t>>{{7}, {3, 5}, {2, 3, 4}, {1, 1, 6}, {2, 1, 3, 2}}) {
    const int64_t total = Slice::whole(shape).num_elements();
    for (int64_t first = 0; first <= total; ++first) {
      for (int64_t count = 0; first + count <= total; ++count) {
        const auto slices = slices_of_flat_range(shape, {first, count});
        EXPECT_LE(slices.size(), std::max<size_t>(1, 2 * shape.size() - 1));
        std::vector<int64_t> seen;
        for (const auto& s : slices) {
          const auto part = flat_indices(shape, s);
          seen.insert(seen.end(), part.begin(), part.end());
        }
        std::vector<int64_t> expected(count);
        std::iota(expected.begin(), expected.end(), first);
        ASSERT_EQ(seen, expected);
      }
    }
  }
  EXPECT_EQ(slices_of_flat_range({}, {0, 1}).size(), 1u);
}

TEST(Intersect, MatchesBruteForce) {
  const std::vector<int64_t> shape = {4, 5, 3};
  const auto key = philox_key(11, "slices");
  auto draw = [&](uint32_t i) {
    const auto r = philox4x32({i, 0, 0, 0}, key), q = philox4x32({i, 1, 0, 0}, key);
    Slice s = Slice::whole(shape);
    for (int d = 0; d < 3; ++d) {
      s.offset[d] = r[d] % shape[d];
      s.size[d] = 1 + q[d] % (shape[d] - s.offset[d]);
    }
    return s;
  };
  for (uint32_t i = 0; i < 300; ++i) {
    const Slice a = draw(2 * i), b = draw(2 * i + 1);
    const auto ia = flat_indices(shape, a), ib = flat_indices(shape, b);
    std::vector<int64_t> expected;
    std::set_intersection(ia.begin(), ia.end(), ib.begin(), ib.end(), std::back_inserter(expected));
    const auto common = intersect(a, b);
    ASSERT_EQ(common.has_value(), !expected.empty());
    if (common) {
      ASSERT_EQ(flat_indices(shape, *common), expected);
    }
    // Copying the common part run by run moves exactly its elements.
    if (!common) continue;
    std::vector<int64_t> to(b.num_elements(), -1);
    for_each_run(a, b, *common, [&](int64_t from, int64_t at, int64_t count) {
      for (int64_t j = 0; j < count; ++j) to[at + j] = ia[from + j];
    });
    for (size_t j = 0; j < to.size(); ++j) {
      const bool wanted = std::binary_search(expected.begin(), expected.end(), ib[j]);
      ASSERT_EQ(to[j], wanted ? ib[j] : -1);
    }
  }
}

TEST(Slice, TextOfNumbersWhoseSumDoesNotFit) {
  EXPECT_EQ((Slice{{0, 16}, {4, 16}}).to_string(), "[0:4, 16:32]");
  EXPECT_EQ((Slice{{INT64_MAX}, {3}}).to_string(), "[9223372036854775807:+3]");
}

TEST(EvenPart, CoversWithoutGaps) {
  for (int64_t size : {0, 1, 5, 101, 151936}) {
    for (int64_t parts : {1, 2, 3, 7, 16}) {
      int64_t next = 0, longest = 0, shortest = INT64_MAX;
      for (int64_t i = 0; i < parts; ++i) {
        const Range r = even_part(size, parts, i);
        EXPECT_EQ(r.first, next);
        next += r.count;
        longest = std::max(longest, r.count), shortest = std::min(shortest, r.count);
      }
      EXPECT_EQ(next, size);
      EXPECT_LE(longest - shortest, 1);
    }
  }
}

}  // namespace
}  // namespace penteract::topology
