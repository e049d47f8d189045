// The rotary frequencies of a model. Thread-safety: pure function.
#pragma once

#include <vector>

#include "penteract/spec/model_spec.h"

namespace penteract::spec {

// [head_dim / 2] radians a position: theta^(-2i/d) (Su et al. 2021), scaled where the model says so (Llama 3.1's
// reference code, apply_scaling).
std::vector<double> rope_frequencies(const ModelSpec& model);

}  // namespace penteract::spec
