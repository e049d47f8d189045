// The arithmetic of a model, for tflops in metrics. Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "penteract/spec/model_spec.h"

namespace penteract::spec {

// Forward operations a token: 2 for each active parameter without the input embedding (of experts, K of E), and the
// causal half of attention: 2 · seq_length · heads · head_dim a layer (scores and values, 2 operations each, half).
double forward_flops_per_token(const ModelSpec& model, int64_t seq_length);

}  // namespace penteract::spec
