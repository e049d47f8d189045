// RMSNorm over the last dimension, in the order of Hugging Face's Qwen and Llama: normalise in the accumulate dtype,
// round to x's dtype, then multiply by the weight (Zhang and Sennrich 2019, equation 4).
// Thread-safety: pure functions. Deterministic for any number of threads. Gradients are off inside.
#pragma once

#include <ATen/core/Tensor.h>

namespace penteract::ops {

struct RmsNormResult {
  at::Tensor y;     // like x
  at::Tensor rstd;  // [rows], accumulate dtype: 1 / sqrt(mean(x²) + eps)
};

struct RmsNormGrads {
  at::Tensor dx;       // like x
  at::Tensor dweight;  // [H], accumulate dtype, summed over all rows
};

// x [..., H] (rows = all leading dimensions: tokens, or tokens · heads), weight [H] of x's dtype.
RmsNormResult rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

RmsNormGrads rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& rstd);

}  // namespace penteract::ops
