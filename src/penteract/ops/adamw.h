// The optimizer's loops over flat ranges: AdamW (Loshchilov and Hutter 2019, algorithm 2), rounding, sum of squares.
// Each is one pass over memory. Thread-safety: pure functions on disjoint ranges. Results do not depend on the number
// of threads, and those of adamw_step and round_to not on how a tensor is cut into ranges either.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace penteract::ops {

struct AdamwStep {
  double lr = 0, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0;
  int64_t step = 1;       // 1 for the first update: bias corrections 1 - beta^step
  double grad_scale = 1;  // the gradient is multiplied by it (clipping)
};

// master, exp_avg, exp_avg_sq: contiguous, updated in place; grad: read. Equal sizes, one dtype (float or double).
// master -= lr · weight_decay · master + lr · m̂ / (sqrt(v̂) + eps), in torch.optim.AdamW's order of operations.
void adamw_step(at::Tensor master, at::Tensor exp_avg, at::Tensor exp_avg_sq, const at::Tensor& grad,
                const AdamwStep& step);

// out = master rounded to nearest even; contiguous, equal sizes; out bfloat16, float or double.
void round_to(const at::Tensor& master, at::Tensor out);

struct SumOfSquares {
  double sum = 0;      // accumulated in double, in a fixed order of the elements
  bool finite = true;  // false when an element, or a square in double, is not finite
};

SumOfSquares sum_of_squares(const at::Tensor& flat);

}  // namespace penteract::ops
