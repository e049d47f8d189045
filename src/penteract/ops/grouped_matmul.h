// The products of matmul.h for a list of groups (experts): group g owns counts[g] consecutive rows and matrix w[g].
// Zero counts are allowed: such a group has no rows and its main_grad stays as it is. Groups of few rows, where a
// product is bound by reading the weights, run on the CPU in own kernels that read each weight once in its stored width.
// Thread-safety: pure functions. A row's bits depend on its group's count, not on the other groups. Gradients off inside.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace penteract::ops {

// x [sum(counts),K], w [E,N,K] -> [sum(counts),N] in the dtype of x.
at::Tensor grouped_matmul_nt(const at::Tensor& x, const at::Tensor& w, const std::vector<int64_t>& counts);

// dy [sum(counts),N], w [E,N,K] -> [sum(counts),K] in the dtype of dy.
at::Tensor grouped_matmul_nn(const at::Tensor& dy, const at::Tensor& w, const std::vector<int64_t>& counts);

// main_grad[g] += dy_gᵀ·x_g; main_grad [E,N,K] contiguous, accumulate dtype of x.
void grouped_wgrad_accumulate(const at::Tensor& dy, const at::Tensor& x, const std::vector<int64_t>& counts,
                              at::Tensor main_grad);

}  // namespace penteract::ops
