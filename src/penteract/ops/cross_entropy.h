// The local parts of a vocabulary-parallel cross-entropy; the caller reduces between them. With logits [T, V_local] the
// shard [first, first + V_local) of the vocabulary: m = max over shards of row_max, s = sum over shards of row_sum_exp,
// z = sum over shards of target_logits, lse = m + log(s), loss = lse - z (Shoeybi et al. 2019, section 3).
// Logits stay in their dtype: each pass widens to the accumulate dtype in registers. Results [T] are in that dtype.
// Thread-safety: pure functions. Deterministic for any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace penteract::ops {

// The largest logit of each row; NaN where the row holds one; -inf for V_local = 0.
at::Tensor row_max(const at::Tensor& logits);

// The sum of exp(logit - max[t]) of each row.
at::Tensor row_sum_exp(const at::Tensor& logits, const at::Tensor& max);

// logits[t, targets[t] - first] where that is in this shard, else 0. targets int64 [T], global ids; a negative id
// (no target) is in no shard.
at::Tensor target_logits(const at::Tensor& logits, const at::Tensor& targets, int64_t first);

// Overwrites logits with the gradient (exp(logit - lse[t]) - [target]) · dloss[t]. Rows with dloss 0 become exactly 0.
void cross_entropy_backward_(at::Tensor logits, const at::Tensor& lse, const at::Tensor& targets, int64_t first,
                             const at::Tensor& dloss);

}  // namespace penteract::ops
