// The files of a probe, all safetensors (docs/formats/probe.md). Every file read is taken as hostile.
// Errors: probe_input, file_*, storage_*. Thread-safety: pure functions.
#pragma once

#include <string>

#include "penteract/base/result.h"
#include "penteract/infer/probe.h"
#include "penteract/spec/model_spec.h"

namespace penteract::infer {

// `ids` (int64 or int32 [batch, seq]) and optionally `loss_mask` (same shape, any integer or boolean; 1 where the token
// is a target). An id outside of the vocabulary, another tensor or a mask that is neither 0 nor 1 is an error.
Result<ProbeInput> read_probe_input(const std::string& path, int64_t vocab_size);

// What a record of the same ids left: "routes.LAYER" int64 [batch, seq, K] for exactly the mixture-of-experts layers of
// the model, each token with K different experts.
Result<RouteTable> read_routes(const std::string& path, const spec::ModelSpec& model, int64_t batch, int64_t seq);

// `logits`, `loss`, and `grad.NAME` where there are gradients. Replaces the file in one step.
Status write_probe_output(const std::string& path, const ProbeOutput& output, bool fp64);
Status write_routes(const std::string& path, const RouteTable& routes);

}  // namespace penteract::infer
