// Llama 3.x (meta-llama): grouped-query attention, SwiGLU, RoPE with the llama3 scaling, tied in the small sizes.
#pragma once

#include "penteract/families/registry.h"

namespace penteract::families::llama {

Family family();

}  // namespace penteract::families::llama
