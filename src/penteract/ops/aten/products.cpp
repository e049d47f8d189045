#include <ATen/ops/mm.h>

#include "penteract/ops/aten/aten.h"
#include "penteract/precision/precision.h"

namespace penteract::ops::aten {
namespace {

// a·b in the accumulate dtype. Only CUDA multiplies bfloat16 into float.
at::Tensor wide_product(const at::Tensor& a, const at::Tensor& b) {
  const auto accumulate = precision::accumulate_dtype(a.scalar_type());
  if (a.scalar_type() == accumulate) return at::mm(a, b);
  return a.is_cuda() ? at::mm(a, b, accumulate) : at::mm(a.to(accumulate), b.to(accumulate));
}

// a·b, rounded once: CUDA's library accumulates bfloat16 in float, those of the CPU do not all.
at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  return a.is_cuda() ? at::mm(a, b) : wide_product(a, b).to(a.scalar_type());
}

// Calls f(group, first row, rows) for the groups that have rows.
template <class F>
void for_groups(const std::vector<int64_t>& counts, const F& f) {
  int64_t first = 0;
  for (size_t g = 0; g < counts.size(); first += counts[g++]) {
    if (counts[g] > 0) f(static_cast<int64_t>(g), first, counts[g]);
  }
}

}  // namespace

at::Tensor matmul_nt(const at::Tensor& x, const at::Tensor& w) { return product(x, w.t()); }

at::Tensor matmul_nn(const at::Tensor& dy, const at::Tensor& w) { return product(dy, w); }

void wgrad_accumulate(const at::Tensor& dy, const at::Tensor& x, at::Tensor main_grad) {
  main_grad.add_(wide_product(dy.t(), x));
}

at::Tensor grouped_matmul_nt(const at::Tensor& x, const at::Tensor& w, const std::vector<int64_t>& counts) {
  const auto y = at::empty({x.size(0), w.size(1)}, x.options());
  for_groups(counts, [&](int64_t g, int64_t first, int64_t count) {
    y.narrow(0, first, count).copy_(product(x.narrow(0, first, count), w.select(0, g).t()));
  });
  return y;
}

at::Tensor grouped_matmul_nn(const at::Tensor& dy, const at::Tensor& w, const std::vector<int64_t>& counts) {
  const auto dx = at::empty({dy.size(0), w.size(2)}, dy.options());
  for_groups(counts, [&](int64_t g, int64_t first, int64_t count) {
    dx.narrow(0, first, count).copy_(product(dy.narrow(0, first, count), w.select(0, g)));
  });
  return dx;
}

void grouped_wgrad_accumulate(const at::Tensor& dy, const at::Tensor& x, const std::vector<int64_t>& counts,
                              at::Tensor main_grad) {
  for_groups(counts, [&](int64_t g, int64_t first, int64_t count) {
    wgrad_accumulate(dy.narrow(0, first, count), x.narrow(0, first, count), main_grad.select(0, g));
  });
}

}  // namespace penteract::ops::aten
