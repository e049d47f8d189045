// The reductions, once for every transport: element by element over the members' views, in group-rank order.
// bf16 accumulates in fp32 and rounds once (to nearest, ties to even). Thread-safety: pure functions.
#pragma once

#include <c10/core/ScalarType.h>

#include <span>

#include "penteract/comm/transport.h"

namespace penteract::comm {

enum class ReduceOp { sum, max };

// fp32, fp64, bf16, int64.
bool reducible(at::ScalarType dtype);

// out = views[0] op views[1] op ... REQUIRES: equal sizes, at least one view. `out` may be one of the views, else it
// overlaps none. A NaN stays NaN in the maximum.
void reduce_views(ReduceOp op, at::ScalarType dtype, std::span<const Bytes> views, std::byte* out);

}  // namespace penteract::comm
