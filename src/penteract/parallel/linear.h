// Tensor-parallel linear layers (Shoeybi et al. 2019) with sequence parallelism (Korthikanti et al. 2022).
// Token rows are sequence-major: row = position · B + sequence, so that gathering shards of dim 0 gathers positions.
// Thread-safety: a rank's own thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "penteract/comm/group.h"
#include "penteract/parallel/parameter.h"

namespace penteract::parallel {

// How a layer meets the tensor-parallel group.
struct TensorParallel {
  comm::Group tp;
  bool sp = false;  // inputs of column and outputs of row layers are sequence shards
  WeightGradQueue* queue = nullptr;
};

// x [T_sp or T, K] -> [T, sum of N_local]: each part's weight [N_local, K] holds this rank's output rows.
// With sp the shards of x are gathered first. COLLECTIVE: tp.   BACKWARD: reduce-scatter with sp, else all-reduce.
at::Tensor column_linear(const at::Tensor& x, const std::vector<const Parameter*>& parts,
                         const TensorParallel& parallel);

// x [T, K_local] -> [T_sp or T, N]: the sum over tp of x·wᵀ with w [N, K_local]; scattered over positions with sp.
// COLLECTIVE: tp.   BACKWARD: all-gather with sp, else nothing.
at::Tensor row_linear(const at::Tensor& x, const Parameter& weight, const TensorParallel& parallel);

// Sums a partial gradient of gathered rows over tp: reduce-scatter with sp, all-reduce without. COLLECTIVE: tp.
at::Tensor reduce_rows(at::Tensor partial, const TensorParallel& parallel);
// The rows of all tp ranks with sp, x itself without. COLLECTIVE: tp.
at::Tensor gather_rows_over_tp(const at::Tensor& x, const TensorParallel& parallel);

}  // namespace penteract::parallel
