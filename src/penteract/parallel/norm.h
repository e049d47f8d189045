// RMSNorm with a weight that all ranks of the stage hold. Thread-safety: a rank's own thread.
#pragma once

#include <ATen/core/Tensor.h>

#include "penteract/parallel/parameter.h"

namespace penteract::parallel {

// x [..., H] -> like x. No collective: the weight's gradient is summed with its reduction class.
at::Tensor rms_norm(const at::Tensor& x, const Parameter& weight, double eps, WeightGradQueue* queue);

}  // namespace penteract::parallel
