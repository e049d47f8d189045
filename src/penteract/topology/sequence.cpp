#include "penteract/topology/sequence.h"

#include <numeric>

#include "penteract/base/check.h"

namespace penteract::topology {

int64_t padded_length(const Layout& layout, int64_t seq_length) {
  const int64_t zigzag = layout.cp > 1 ? 2 * int64_t{layout.cp} : 1;
  const int64_t unit = std::lcm(zigzag, int64_t{layout.cp} * (layout.sp ? layout.tp : 1));
  return (seq_length + unit - 1) / unit * unit;
}

std::vector<Range> context_ranges(int cp, int cp_rank, int64_t padded) {
  if (cp == 1) return {{0, padded}};
  const int64_t segment = padded / (2 * cp);
  PENT_CHECK_EQ(segment * 2 * cp, padded);
  return {{cp_rank * segment, segment}, {(2 * cp - 1 - cp_rank) * segment, segment}};
}

std::vector<int64_t> local_positions(const Layout& layout, int cp_rank, int tp_rank, int64_t padded) {
  std::vector<int64_t> positions;
  for (const Range& range : context_ranges(layout.cp, cp_rank, padded)) {
    for (int64_t i = 0; i < range.count; ++i) positions.push_back(range.first + i);
  }
  if (!layout.sp) return positions;
  const int64_t part = static_cast<int64_t>(positions.size()) / layout.tp;
  PENT_CHECK_EQ(part * layout.tp, static_cast<int64_t>(positions.size()));
  return {positions.begin() + tp_rank * part, positions.begin() + (tp_rank + 1) * part};
}

}  // namespace penteract::topology
