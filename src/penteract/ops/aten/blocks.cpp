#include <ATen/ops/cat.h>

#include "penteract/ops/aten/aten.h"
#include "penteract/precision/precision.h"

namespace penteract::ops::aten {
namespace {

at::Tensor widened(const at::Tensor& x) { return x.to(precision::accumulate_dtype(x.scalar_type())); }

}  // namespace

RmsNormResult rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const auto wide = widened(x).view({-1, weight.size(0)});
  const auto rstd = (wide.square().mean(1, true) + eps).sqrt_().reciprocal_();
  return {((wide * rstd).to(x.scalar_type()) * weight).view(x.sizes()), rstd.squeeze(1)};
}

// With h = x·rstd and g = dy·weight: dx = rstd·(g - h·mean(g·h)), dweight = sum of dy·(h rounded to x's dtype).
RmsNormGrads rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& rstd) {
  const int64_t width = weight.size(0);
  const auto scale = rstd.unsqueeze(1), d = widened(dy).view({-1, width}), h = widened(x).view({-1, width}) * scale;
  const auto g = d * widened(weight);
  const auto dx = (g - h * (g * h).mean(1, true)) * scale;
  const auto dweight = (d * h.to(x.scalar_type())).sum(0);
  return {dx.to(x.scalar_type()).view(x.sizes()), dweight};
}

at::Tensor rope(const at::Tensor& x, const RopeTables& tables, bool inverse) {
  const int64_t tokens = x.size(0), half = x.size(3) / 2;
  const auto wide = widened(x), a = wide.narrow(3, 0, half), b = wide.narrow(3, half, half);
  const auto cos = tables.cos.view({tokens, 1, 1, half}), sin = tables.sin.view({tokens, 1, 1, half});
  const auto turn = inverse ? -sin : sin;
  return at::cat({a * cos - b * turn, b * cos + a * turn}, 3).to(x.scalar_type());
}

at::Tensor swiglu(const at::Tensor& gate_up) {
  const int64_t width = gate_up.size(1) / 2;
  const auto wide = widened(gate_up), gate = wide.narrow(1, 0, width);
  return (gate / ((-gate).exp_() + 1) * wide.narrow(1, width, width)).to(gate_up.scalar_type());
}

at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up) {
  const int64_t width = dy.size(1);
  const auto d = widened(dy), wide = widened(gate_up);
  const auto gate = wide.narrow(1, 0, width), up = wide.narrow(1, width, width);
  const auto sigmoid = ((-gate).exp_() + 1).reciprocal_();
  const auto dgate = d * up * sigmoid * (gate * (1 - sigmoid) + 1);
  return at::cat({dgate, d * gate * sigmoid}, 1).to(dy.scalar_type());
}

}  // namespace penteract::ops::aten
