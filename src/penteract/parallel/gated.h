// SwiGLU in the graph. Thread-safety: a rank's own thread.
#pragma once

#include <ATen/core/Tensor.h>

namespace penteract::parallel {

// gate_up [T, 2I] -> [T, I].
at::Tensor gated(const at::Tensor& gate_up);

}  // namespace penteract::parallel
