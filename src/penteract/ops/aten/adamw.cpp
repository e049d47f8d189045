#include <cmath>

#include "penteract/ops/aten/aten.h"
#include "penteract/ops/aten/passes.h"

namespace penteract::ops::aten {

void adamw_step(at::Tensor master, at::Tensor exp_avg, at::Tensor exp_avg_sq, const at::Tensor& grad,
                const AdamwStep& step) {
  const double bias1 = 1 - std::pow(step.beta1, static_cast<double>(step.step));
  const double bias2 = 1 - std::pow(step.beta2, static_cast<double>(step.step));
  for_passes(master.numel(), 1, [&](int64_t first, int64_t count) {
    const auto part = [&](const at::Tensor& t) { return t.view({-1}).narrow(0, first, count); };
    const auto g = part(grad) * step.grad_scale;
    const auto p = part(master), m = part(exp_avg), v = part(exp_avg_sq);
    m.add_(g - m, 1 - step.beta1);
    v.mul_(step.beta2).addcmul_(g, g, 1 - step.beta2);
    const auto update = m / v.sqrt().div_(std::sqrt(bias2)).add_(step.eps);
    p.mul_(1 - step.lr * step.weight_decay).sub_(update, step.lr / bias1);
  });
}

void round_to(const at::Tensor& master, at::Tensor out) { out.copy_(master.view_as(out)); }

SumOfSquares sum_of_squares(const at::Tensor& flat) {
  const auto total = at::zeros({}, flat.options().dtype(at::kDouble));
  for_passes(flat.numel(), 1, [&](int64_t first, int64_t count) {
    total.add_(flat.view({-1}).narrow(0, first, count).to(at::kDouble).square().sum());
  });
  SumOfSquares result;
  result.sum = total.item<double>();
  result.finite = std::isfinite(result.sum);
  return result;
}

}  // namespace penteract::ops::aten
