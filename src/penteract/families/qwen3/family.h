// Qwen3 (dense): Llama's decoder with RMSNorm of each query and key head.
#pragma once

#include "penteract/families/registry.h"

namespace penteract::families::qwen3 {

Family family();

}  // namespace penteract::families::qwen3
