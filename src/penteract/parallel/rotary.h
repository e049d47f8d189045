// Rotary positions in the graph. Thread-safety: a rank's own thread.
#pragma once

#include <ATen/core/Tensor.h>

#include "penteract/ops/rope.h"

namespace penteract::parallel {

// x [S, B, heads, d] -> rotated by the tables' positions. BACKWARD: the inverse rotation.
at::Tensor rotary(const at::Tensor& x, const ops::RopeTables& tables);

}  // namespace penteract::parallel
