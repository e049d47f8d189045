// The number formats of a recipe. Models never ask which recipe is on: they ask this value for dtypes.
// No operator names fp32: it accumulates in accumulate_dtype(dtype of its input).
#pragma once

#include <ATen/core/Tensor.h>

#include "penteract/spec/run_spec.h"

namespace penteract::precision {

struct Precision {
  spec::Recipe recipe = spec::Recipe::bf16;
  at::ScalarType compute = at::kBFloat16;  // activations and weights
  at::ScalarType master = at::kFloat;      // master weights, moments, main gradients; router weights
};

Precision make_precision(spec::Recipe recipe);

// max(fp32, dtype): double for double, float for everything narrower.
at::ScalarType accumulate_dtype(at::ScalarType dtype);

}  // namespace penteract::precision
