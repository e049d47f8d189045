// Bounds the temporary tensors of the plain ATen operators.
#pragma once

#include <algorithm>
#include <cstdint>

#include "penteract/ops/aten_scope.h"

namespace penteract::ops::aten {

// Calls f(first, count) for consecutive ranges of `total` items of `width` elements each.
template <class F>
void for_passes(int64_t total, int64_t width, const F& f) {
  const int64_t step = std::max<int64_t>(1, AtenScope::elements_per_pass() / std::max<int64_t>(width, 1));
  for (int64_t first = 0; first < total; first += step) f(first, std::min(step, total - first));
}

}  // namespace penteract::ops::aten
