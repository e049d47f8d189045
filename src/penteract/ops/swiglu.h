// SwiGLU (Shazeer 2020): silu(gate) · up with gate and up the halves of each row; in the accumulate dtype, rounded once.
// Thread-safety: pure functions. Deterministic for any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace penteract::ops {

// gate_up [T, 2I] -> [T, I].
at::Tensor swiglu(const at::Tensor& gate_up);

// dy [T, I] -> d(gate_up) [T, 2I].
at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up);

}  // namespace penteract::ops
