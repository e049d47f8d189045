#include "penteract/ops/adamw.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "penteract/ops/aten/aten.h"
#include "penteract/ops/dispatch.h"

namespace penteract::ops {
namespace {

constexpr int64_t kElementsPerTask = 65536;
// Elements of one partial sum of squares; the partials are added in order.
constexpr int64_t kElementsPerPartial = 16384;

template <class F>
void with_flat_type(const at::Tensor& flat, F&& f) {
  if (flat.scalar_type() == at::kDouble) {
    f(double{});
  } else {
    check_dtype(flat, at::kFloat, "a flat range of the optimizer");
    f(float{});
  }
}

void check_like(const at::Tensor& tensor, const at::Tensor& master, const char* name) {
  check_contiguous(tensor, name);
  check_dtype(tensor, master.scalar_type(), name);
  PENT_CHECK_EQ(tensor.numel(), master.numel());
}

}  // namespace

void adamw_step(at::Tensor master, at::Tensor exp_avg, at::Tensor exp_avg_sq, const at::Tensor& grad,
                const AdamwStep& step) {
  const at::NoGradGuard no_grad;
  PENT_CHECK_LE(1, step.step);
  check_contiguous(master, "master");
  check_like(exp_avg, master, "exp_avg");
  check_like(exp_avg_sq, master, "exp_avg_sq");
  check_like(grad, master, "grad");
  if (use_aten(master, exp_avg, exp_avg_sq, grad)) return aten::adamw_step(master, exp_avg, exp_avg_sq, grad, step);
  const double bias1 = 1 - std::pow(step.beta1, static_cast<double>(step.step));
  const double bias2 = 1 - std::pow(step.beta2, static_cast<double>(step.step));
  const AdamwConstants constants{1 - step.lr * step.weight_decay,
                                 step.beta1,
                                 step.beta2,
                                 step.lr / bias1,
                                 std::sqrt(bias2),
                                 step.eps,
                                 step.grad_scale};
  with_flat_type(master, [&]<class A>(A) {
    at::parallel_for(0, master.numel(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      kernels<A>().adamw(data<A>(master) + begin, data<A>(exp_avg) + begin, data<A>(exp_avg_sq) + begin,
                         data<A>(grad) + begin, end - begin, constants);
    });
  });
}

void round_to(const at::Tensor& master, at::Tensor out) {
  const at::NoGradGuard no_grad;
  check_contiguous(master, "master");
  check_contiguous(out, "out");
  PENT_CHECK_EQ(out.numel(), master.numel());
  if (use_aten(master, out)) return aten::round_to(master, out);
  if (master.scalar_type() != at::kFloat || out.scalar_type() != at::kBFloat16) {
    out.copy_(master.view_as(out));
    return;
  }
  at::parallel_for(0, master.numel(), kElementsPerTask, [&](int64_t begin, int64_t end) {
    kernels<Bf16>().narrow(data<float>(master) + begin, data<Bf16>(out) + begin, end - begin);
  });
}

SumOfSquares sum_of_squares(const at::Tensor& flat) {
  const at::NoGradGuard no_grad;
  check_contiguous(flat, "flat");
  if (use_aten(flat)) return aten::sum_of_squares(flat);
  const int64_t count = flat.numel(), num_partials = (count + kElementsPerPartial - 1) / kElementsPerPartial;
  std::vector<double> partials(static_cast<size_t>(num_partials));
  with_flat_type(flat, [&]<class A>(A) {
    at::parallel_for(0, num_partials, 4, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t first = p * kElementsPerPartial;
        partials[static_cast<size_t>(p)] =
            kernels<A>().sum_of_squares(data<A>(flat) + first, std::min(kElementsPerPartial, count - first));
      }
    });
  });
  SumOfSquares result;
  for (const double partial : partials) result.sum += partial;
  result.finite = std::isfinite(result.sum);
  return result;
}

}  // namespace penteract::ops
