// How context and sequence parallelism cut a sequence of positions. Thread-safety: pure functions.
// Context parallel: 2·cp segments, rank r holds r and 2cp-1-r (zigzag: equal causal work).
// Sequence parallel: the cp rank's positions, in that order, in tp equal contiguous parts.
#pragma once

#include <cstdint>
#include <vector>

#include "penteract/topology/layout.h"
#include "penteract/topology/slice.h"

namespace penteract::topology {

// The least padded length the axes divide: a multiple of lcm(2·cp, cp·tp with sp); cp = 1 needs no halves.
int64_t padded_length(const Layout& layout, int64_t seq_length);

// The one or two position ranges of a context-parallel rank, ascending. One range (all) where cp = 1.
std::vector<Range> context_ranges(int cp, int cp_rank, int64_t padded);

// The global positions of a rank's tokens in local order: context ranges, then the tp part where sp is on.
std::vector<int64_t> local_positions(const Layout& layout, int cp_rank, int tp_rank, int64_t padded);

}  // namespace penteract::topology
