#include "penteract/ops/rms_norm.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "penteract/ops/aten/aten.h"
#include "penteract/ops/dispatch.h"
#include "penteract/precision/precision.h"

namespace penteract::ops {
namespace {

// Rows whose weight gradient is summed into one partial: fixed, so that the sum does not depend on the threads.
constexpr int64_t kRowsPerPartial = 64;

int64_t check_norm(const at::Tensor& x, const at::Tensor& weight) {
  PENT_CHECK(x.dim() >= 1 && weight.dim() == 1);
  check_contiguous(x, "x");
  check_contiguous(weight, "weight");
  check_dtype(weight, x.scalar_type(), "weight");
  PENT_CHECK_EQ(x.size(-1), weight.size(0));
  PENT_CHECK_LT(0, weight.size(0));
  return x.numel() / weight.size(0);
}

}  // namespace

RmsNormResult rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::NoGradGuard no_grad;
  const int64_t rows = check_norm(x, weight), width = weight.size(0);
  if (use_aten(x, weight)) return aten::rms_norm(x, weight, eps);
  const auto accumulate = x.options().dtype(precision::accumulate_dtype(x.scalar_type()));
  RmsNormResult result{at::empty(x.sizes(), x.options()), at::empty({rows}, accumulate)};
  with_element_type(x.scalar_type(), [&]<class T>(T) {
    const auto* xs = data<T>(x);
    const auto* ws = data<T>(weight);
    auto* ys = data<T>(result.y);
    auto* rstd = data<Acc<T>>(result.rstd);
    at::parallel_for(0, rows, rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        rstd[i] = kernels<T>().row_rms_norm(xs + i * width, ws, ys + i * width, width, static_cast<Acc<T>>(eps));
      }
    });
  });
  return result;
}

RmsNormGrads rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& rstd) {
  const at::NoGradGuard no_grad;
  const int64_t rows = check_norm(x, weight), width = weight.size(0);
  check_contiguous(dy, "dy");
  check_dtype(dy, x.scalar_type(), "dy");
  PENT_CHECK(dy.numel() == x.numel() && rstd.numel() == rows);
  const auto accumulate = x.options().dtype(precision::accumulate_dtype(x.scalar_type()));
  check_dtype(rstd, accumulate.dtype().toScalarType(), "rstd");
  if (use_aten(dy, x, weight, rstd)) return aten::rms_norm_backward(dy, x, weight, rstd);
  const int64_t num_partials = (rows + kRowsPerPartial - 1) / kRowsPerPartial;
  RmsNormGrads grads{at::empty(x.sizes(), x.options()), at::zeros({width}, accumulate)};
  const auto partials = at::zeros({num_partials, width}, accumulate);
  with_element_type(x.scalar_type(), [&]<class T>(T) {
    using A = Acc<T>;
    const auto *ds = data<T>(dy), *xs = data<T>(x), *ws = data<T>(weight);
    const auto* rs = data<A>(rstd);
    auto* dxs = data<T>(grads.dx);
    auto* sums = data<A>(partials);
    at::parallel_for(0, num_partials, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t last = std::min(rows, (p + 1) * kRowsPerPartial);
        for (int64_t i = p * kRowsPerPartial; i < last; ++i) {
          kernels<T>().row_rms_norm_backward(ds + i * width, xs + i * width, ws, rs[i], dxs + i * width,
                                             sums + p * width, width);
        }
      }
    });
    auto* dw = data<A>(grads.dweight);
    for (int64_t p = 0; p < num_partials; ++p) {
      for (int64_t i = 0; i < width; ++i) dw[i] += sums[p * width + i];
    }
  });
  return grads;
}

}  // namespace penteract::ops
