#include "penteract/ops/rope.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "penteract/ops/aten/aten.h"
#include "penteract/ops/dispatch.h"
#include "penteract/precision/precision.h"

namespace penteract::ops {

RopeTables make_rope_tables(const std::vector<int64_t>& positions, const std::vector<double>& frequencies,
                            at::ScalarType accumulate) {
  const int64_t half = static_cast<int64_t>(frequencies.size()), tokens = static_cast<int64_t>(positions.size());
  const auto options = at::TensorOptions().dtype(accumulate);
  RopeTables tables{at::empty({tokens, half}, options), at::empty({tokens, half}, options)};
  const auto fill = [&]<class A>(A) {
    auto *cos = data<A>(tables.cos), *sin = data<A>(tables.sin);
    for (int64_t i = 0; i < half; ++i) {
      for (int64_t t = 0; t < tokens; ++t) {
        const double angle =
            static_cast<double>(positions[static_cast<size_t>(t)]) * frequencies[static_cast<size_t>(i)];
        cos[t * half + i] = static_cast<A>(std::cos(angle));
        sin[t * half + i] = static_cast<A>(std::sin(angle));
      }
    }
  };
  if (accumulate == at::kDouble) {
    fill(double{});
  } else {
    PENT_CHECK(accumulate == at::kFloat, "tables in {}", c10::toString(accumulate));
    fill(float{});
  }
  return tables;
}

at::Tensor rope(const at::Tensor& x, const RopeTables& tables, bool inverse) {
  const at::NoGradGuard no_grad;
  PENT_CHECK(x.dim() == 4 && x.stride(3) == 1, "x must be [T, B, heads, d] with a dense d");
  const int64_t tokens = x.size(0), batch = x.size(1), heads = x.size(2), dim = x.size(3), half = dim / 2;
  PENT_CHECK(tables.cos.size(0) == tokens && 2 * tables.cos.size(1) == dim, "tables of {} × {} for {} × {}",
             tables.cos.size(0), tables.cos.size(1), tokens, dim);
  check_dtype(tables.cos, precision::accumulate_dtype(x.scalar_type()), "tables");
  if (use_aten(x, tables.cos, tables.sin)) return aten::rope(x, tables, inverse);
  auto out = at::empty(x.sizes(), x.options());
  with_element_type(x.scalar_type(), [&]<class T>(T) {
    const auto* xs = data<T>(x);
    const auto *cos = data<Acc<T>>(tables.cos), *sin = data<Acc<T>>(tables.sin);
    auto* ys = data<T>(out);
    const Acc<T> sign = inverse ? -1 : 1;
    at::parallel_for(0, tokens, rows_per_task(batch * heads * dim), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        for (int64_t b = 0; b < batch; ++b) {
          for (int64_t h = 0; h < heads; ++h) {
            kernels<T>().row_rope(xs + t * x.stride(0) + b * x.stride(1) + h * x.stride(2), cos + t * half,
                                  sin + t * half, sign, ys + ((t * batch + b) * heads + h) * dim, half);
          }
        }
      }
    });
  });
  return out;
}

}  // namespace penteract::ops
