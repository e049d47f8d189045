#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "penteract/ops/aten/aten.h"
#include "penteract/precision/precision.h"

namespace penteract::ops::aten {
namespace {

// Row index[t] of y for each t in the dtype of `like`; zeros where index is -1.
at::Tensor rows_or_zero(const at::Tensor& y, const at::Tensor& index, const at::Tensor& like) {
  const auto rows = y.index_select(0, index.clamp_min(0)).to(like.scalar_type());
  return rows.masked_fill(index.lt(0).unsqueeze(1), 0);
}

}  // namespace

at::Tensor gather_rows(const at::Tensor& x, const at::Tensor& index) { return x.index_select(0, index); }

void add_rows(at::Tensor into, const at::Tensor& index, const at::Tensor& rows) {
  const auto wide = rows.to(into.scalar_type());
  // Each in the form that adds in a fixed order there: row after row, or by sorted indices (CUDA's index_add_ and
  // embedding_dense_backward do not give equal bits again).
  if (into.is_cpu()) {
    into.index_add_(0, index, wide);
  } else {
    into.index_put_({index}, wide, /*accumulate=*/true);
  }
}

at::Tensor scatter_add_rows(const at::Tensor& y, const at::Tensor& index, int64_t num_rows) {
  const auto accumulate = y.options().dtype(precision::accumulate_dtype(y.scalar_type()));
  const auto sums = at::zeros({num_rows, y.size(1)}, accumulate);
  add_rows(sums, index, y);
  return sums.to(y.scalar_type());
}

at::Tensor combine_rows(const at::Tensor& y, const at::Tensor& index, const at::Tensor& weights) {
  const auto out = at::zeros({weights.size(0), y.size(1)}, weights.options());
  if (y.size(0) > 0) {
    const auto of_choice = index.view(weights.sizes());
    for (int64_t k = 0; k < weights.size(1); ++k) {
      out.addcmul_(rows_or_zero(y, of_choice.select(1, k), weights), weights.narrow(1, k, 1));
    }
  }
  return out.to(y.scalar_type());
}

CombineGrads combine_rows_backward(const at::Tensor& dout, const at::Tensor& y, const at::Tensor& index,
                                   const at::Tensor& weights) {
  CombineGrads grads{at::zeros_like(y), at::zeros_like(weights)};
  const int64_t num_rows = y.size(0), k = weights.size(1);
  if (num_rows == 0 || weights.numel() == 0) return grads;
  const auto wide = dout.to(weights.scalar_type()), of_choice = index.view(weights.sizes());
  for (int64_t i = 0; i < k; ++i) {
    grads.dweights.select(1, i).copy_((wide * rows_or_zero(y, of_choice.select(1, i), weights)).sum(1));
  }
  grads.dweights.masked_fill_(of_choice.lt(0), 0);
  // The choice that names each row; a choice without a row writes to a place past the last one.
  const auto choice = at::full({num_rows + 1}, -1, index.options());
  choice.scatter_(0, at::where(index.lt(0), num_rows, index), at::arange(index.numel(), index.options()));
  const auto named = choice.narrow(0, 0, num_rows), source = named.clamp_min(0);
  const auto scaled =
      wide.index_select(0, source.floor_divide(k)) * weights.reshape({-1}).index_select(0, source).unsqueeze(1);
  grads.dy.copy_(scaled.masked_fill(named.lt(0).unsqueeze(1), 0));
  return grads;
}

}  // namespace penteract::ops::aten
