// Inside of matmul.h and grouped_matmul.h: products into given outputs. All tensors dense and checked by the callers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace penteract::ops {

// Rows of one product; count > 0.
struct RowGroup {
  int64_t row_first, count, matrix;
};

// Up to this many rows own kernels beat widening and a library product (bench/ops_bench.cpp has the figures).
bool is_few(int64_t rows, at::ScalarType dtype);

// The products of groups that have few rows, all in one parallel loop. w and main_grad [E,N,K].
void few_rows_nt(const at::Tensor& x, const at::Tensor& w, const std::vector<RowGroup>& groups, const at::Tensor& y);
void few_rows_nn(const at::Tensor& dy, const at::Tensor& w, const std::vector<RowGroup>& groups, const at::Tensor& dx);
void few_rows_wgrad(const at::Tensor& dy, const at::Tensor& x, const std::vector<RowGroup>& groups,
                    const at::Tensor& main_grad);

// The product of one matrix with many rows, by the library's GEMM, bfloat16 widened where that is faster.
void many_rows_nt(const at::Tensor& x, const at::Tensor& w, at::Tensor y);
void many_rows_nn(const at::Tensor& dy, const at::Tensor& w, at::Tensor dx);
void many_rows_wgrad(const at::Tensor& dy, const at::Tensor& x, at::Tensor main_grad);

}  // namespace penteract::ops
