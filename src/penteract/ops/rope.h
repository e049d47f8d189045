// Rotary position embedding with half-split pairing: dimension i turns with i + d/2 (Su et al. 2021, as in Llama, Qwen).
// Angles are computed in double and rounded once, so far positions are as exact as near ones.
// Thread-safety: pure functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace penteract::ops {

// cos and sin of position[t] · frequency[i], both [T, d/2] in the accumulate dtype.
struct RopeTables {
  at::Tensor cos, sin;
};

// frequencies [d/2]: radians a position (spec/rope.h).
RopeTables make_rope_tables(const std::vector<int64_t>& positions, const std::vector<double>& frequencies,
                            at::ScalarType accumulate);

// x [T, B, heads, d], any strides with the last dimension dense -> contiguous result of x's dtype, rounded once.
// inverse turns back, which is also the gradient.
at::Tensor rope(const at::Tensor& x, const RopeTables& tables, bool inverse = false);

}  // namespace penteract::ops
