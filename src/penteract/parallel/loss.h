// The output matrix and the cross-entropy over a vocabulary that tp cuts, equally or not (Shoeybi et al. 2019, section 3).
// Thread-safety: a rank's own thread.
#pragma once

#include <ATen/core/Tensor.h>

#include "penteract/parallel/linear.h"

namespace penteract::parallel {

// hidden [T_sp or T, H]; head weight [V_local, H], `first` the global id of its row 0; targets int64 [T], negative
// where a position has none. Returns the sum of the token losses (scalar, accumulate dtype), equal on all tp ranks.
// COLLECTIVE: tp.   BACKWARD: reduce-scatter with sp, else all-reduce.
at::Tensor vocab_parallel_loss(const at::Tensor& hidden, const Parameter& head, int64_t first,
                               const at::Tensor& targets, const TensorParallel& parallel);

// The logits alone, [T, V_local] in hidden's dtype, outside of the graph. COLLECTIVE: tp.
at::Tensor vocab_parallel_logits(const at::Tensor& hidden, const Parameter& head, const TensorParallel& parallel);

}  // namespace penteract::parallel
