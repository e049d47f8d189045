#include "penteract/model/batch.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "penteract/topology/sequence.h"

namespace penteract::model {
namespace {

topology::Layout layout_of(const char* text) {
  return or_throw(topology::complete_layout(or_throw(topology::parse_layout(text)), 0));
}

// Row r of the batch holds tokens 100·r, 100·r + 1, ...; row 5 does not exist.
bool read(int64_t row, Row& out) {
  if (row == 5) return false;
  for (int i = 0; i <= 7; ++i) out.tokens[i] = static_cast<int32_t>(100 * row + i);
  return true;
}

class BatchOf : public testing::TestWithParam<const char*> {};

// Every (row, position) with a target is seen by each tp rank's context part exactly once over cp and dp, with the right
// neighbour as its target; pads are not valid and have no target (userlog A15, E9).
TEST_P(BatchOf, CoversEachTargetOnce) {
  const auto layout = layout_of(GetParam());
  const BatchShape shape{7, topology::padded_length(layout, 7), 8, 2};
  for (int tp = 0; tp < layout.tp; ++tp) {
    std::map<std::pair<int64_t, int64_t>, int> seen;  // (input, target) -> times
    for (int cp = 0; cp < layout.cp; ++cp) {
      for (int dp = 0; dp < layout.dp; ++dp) {
        topology::Coord coord;
        coord.tp = tp, coord.cp = cp, coord.dp = dp;
        for (const auto& batch : make_micro_batches(shape, layout, coord, read)) {
          const auto* ids = batch.ids.data_ptr<int64_t>();
          const auto* targets = batch.targets.data_ptr<int64_t>();
          for (int64_t i = 0; i < batch.ids.numel(); ++i) {
            if (targets[i] >= 0) ++seen[{ids[i], targets[i]}];
          }
        }
      }
    }
    EXPECT_EQ(seen.size(), 7u * 7u);  // seven rows of seven targets
    for (const auto& [pair, times] : seen) {
      EXPECT_EQ(times, 1);
      EXPECT_EQ(pair.second, pair.first + 1);
    }
  }
}

TEST_P(BatchOf, ValidTokensAreEachOnOneRank) {
  const auto layout = layout_of(GetParam());
  const BatchShape shape{7, topology::padded_length(layout, 7), 8, 2};
  int64_t valid = 0;
  for (int tp = 0; tp < (layout.sp ? layout.tp : 1); ++tp) {
    for (int cp = 0; cp < layout.cp; ++cp) {
      for (int dp = 0; dp < layout.dp; ++dp) {
        topology::Coord coord;
        coord.tp = tp, coord.cp = cp, coord.dp = dp;
        for (const auto& batch : make_micro_batches(shape, layout, coord, read))
          valid += batch.valid.sum().item<int64_t>();
      }
    }
  }
  EXPECT_EQ(valid, 7 * 7);
}

INSTANTIATE_TEST_SUITE_P(Layouts, BatchOf,
                         testing::Values("tp=1", "cp=2", "cp=4", "dp=2", "tp=2,cp=2,dp=2", "tp=4,sp=off", "tp=3,cp=2"));

}  // namespace
}  // namespace penteract::model
