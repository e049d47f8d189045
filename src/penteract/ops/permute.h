// Moving rows between token order and expert order. Sums have a fixed order: the accumulate dtype, rounded once.
// Indices are int64. REQUIRES: in range (checked where they are on the host).
// Thread-safety: pure functions. Deterministic for any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace penteract::ops {

// x [T,H], index [M] -> row i is x[index[i]]; any dtype.
at::Tensor gather_rows(const at::Tensor& x, const at::Tensor& index);

// y [M,H], index [M] -> [num_rows,H]: row t is the sum, in ascending i, of the y[i] with index[i] = t.
at::Tensor scatter_add_rows(const at::Tensor& y, const at::Tensor& index, int64_t num_rows);

// into[index[i]] += rows[i], in ascending i. into [N,H] in the accumulate dtype of rows [M,H], index [M].
void add_rows(at::Tensor into, const at::Tensor& index, const at::Tensor& rows);

// y [M,H], index [T·K] (place in y of choice k of token t; -1: none), weights [T,K] in the accumulate dtype
// -> [T,H]: sum over k, ascending, of weights[t,k] · y[index[t·K+k]].
at::Tensor combine_rows(const at::Tensor& y, const at::Tensor& index, const at::Tensor& weights);

struct CombineGrads {
  at::Tensor dy;        // [M,H], dtype of y; zero in rows that index does not name
  at::Tensor dweights;  // [T,K], accumulate dtype; zero where index is -1
};

// REQUIRES: index names no row twice.
CombineGrads combine_rows_backward(const at::Tensor& dout, const at::Tensor& y, const at::Tensor& index,
                                   const at::Tensor& weights);

}  // namespace penteract::ops
