// Causal attention over a sequence that context parallelism cuts zigzag: keys and values are gathered over cp, each
// local segment attends the segments before it (full) and itself (causal). Attention is a list of blocks.
// Thread-safety: a rank's own thread.
#pragma once

#include <ATen/core/Tensor.h>

#include "penteract/comm/group.h"

namespace penteract::parallel {

// q [T, B, hq, d], k and v [T, B, hkv, d]: T = this rank's positions in local order (topology/sequence.h).
// Returns [T, B, hq, d]. COLLECTIVE: cp.   BACKWARD: reduce-scatter of dk, dv.
at::Tensor context_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const comm::Group& cp,
                             double scale);

}  // namespace penteract::parallel
