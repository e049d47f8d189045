// Whether a model can take a layout, and the nearest layouts that it can. No libtorch, no devices.
#pragma once

#include <string>
#include <vector>

#include "penteract/base/result.h"
#include "penteract/spec/model_spec.h"
#include "penteract/topology/layout.h"

namespace penteract::spec {

// ok, or layout_illegal with the numbers that do not fit and the nearest layouts of as many ranks that do.
// The global batch (0: not looked at) must divide by dp.
Status check_layout(const ModelSpec& model, const topology::Layout& layout, int64_t global_batch = 0);

// The `count` legal layouts of num_ranks ranks nearest to `wanted`: least sum of |log2| of the axes' ratios.
std::vector<topology::Layout> nearest_layouts(const ModelSpec& model, const topology::Layout& wanted,
                                              int64_t global_batch, size_t count);

}  // namespace penteract::spec
