// The correspondence of tensors that Llama's descendants share.
#pragma once

#include <vector>

#include "penteract/families/weight_rules.h"
#include "penteract/spec/model_spec.h"

namespace penteract::families::common {

// Every parameter under its own name; the experts of a layer one tensor each (mlp.experts.E.gate_proj.weight).
std::vector<HfTensor> decoder_tensors(const spec::ModelSpec& model);

}  // namespace penteract::families::common
