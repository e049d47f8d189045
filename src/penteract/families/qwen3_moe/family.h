// Qwen3-MoE (Qwen/Qwen3-30B-A3B and its kin): grouped-query attention with QK-norm, softmax router, SwiGLU experts.
#pragma once

#include "penteract/families/registry.h"

namespace penteract::families::qwen3_moe {

Family family();

}  // namespace penteract::families::qwen3_moe
