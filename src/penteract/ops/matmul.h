// Matrix products of linear layers: y = x·wᵀ, its input gradient, its weight gradient.
// Weights are [out, in] as in Hugging Face. All operands row-major; x, dy and w have one dtype (double, float, bfloat16).
// A bfloat16 product accumulates in float and is rounded once. Where a processor has no bfloat16 instructions,
// operands are widened to float a chunk at a time (ATen's own path is 10 to 100 times slower there): the same value.
// Thread-safety: pure functions. Deterministic for a given number of intra-op threads. Gradients are off inside.
#pragma once

#include <ATen/core/Tensor.h>

namespace penteract::ops {

// x [M,K], w [N,K] -> x·wᵀ [M,N] in the dtype of x.
at::Tensor matmul_nt(const at::Tensor& x, const at::Tensor& w);

// dy [M,N], w [N,K] -> dy·w [M,K] in the dtype of dy.
at::Tensor matmul_nn(const at::Tensor& dy, const at::Tensor& w);

// main_grad [N,K] += dyᵀ·x with dy [M,N], x [M,K]; main_grad contiguous, accumulate dtype of x. M = 0 adds nothing.
void wgrad_accumulate(const at::Tensor& dy, const at::Tensor& x, at::Tensor main_grad);

}  // namespace penteract::ops
