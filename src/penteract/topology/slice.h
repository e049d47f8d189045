// Slice algebra: hyper-rectangles of global tensors and flat ranges of them.
// Thread-safety: value types. Units: elements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penteract::topology {

// A hyper-rectangle: elements offset[d] .. offset[d] + size[d] of each dim d of a global tensor.
struct Slice {
  std::vector<int64_t> offset;
  std::vector<int64_t> size;

  static Slice whole(const std::vector<int64_t>& shape) { return {std::vector<int64_t>(shape.size(), 0), shape}; }
  int num_dims() const { return static_cast<int>(size.size()); }
  int64_t num_elements() const;
  bool operator==(const Slice&) const = default;
  std::string to_string() const;  // "[0:4, 16:32]"
};

// The common part, or nothing when it is empty. REQUIRES: equal number of dims.
std::optional<Slice> intersect(const Slice& a, const Slice& b);

// Part i of n of a dim of `size` elements, as even as possible: the first size % n parts are one longer.
struct Range {
  int64_t first = 0;
  int64_t count = 0;
  bool operator==(const Range&) const = default;
};
Range even_part(int64_t size, int64_t num_parts, int64_t index);

// The flat (row-major) range [first, first + count) of a tensor of shape `shape` as disjoint slices in flat order:
// at most 2d - 1 of them. An empty range gives none. A zero-dim tensor has one element and the slice {}.
std::vector<Slice> slices_of_flat_range(const std::vector<int64_t>& shape, Range range);

// The flat index in `outer` (row-major over outer.size) of the first element of `inner`, which lies inside outer.
int64_t flat_offset(const Slice& outer, const Slice& inner);

// Calls copy(from_index, to_index, count) for each contiguous run of `part` (global coordinates) between two
// row-major buffers that hold `from` and `to`. Both must contain part.
template <class Copy>
void for_each_run(const Slice& from, const Slice& to, const Slice& part, Copy&& copy);

}  // namespace penteract::topology

#include "penteract/topology/slice_inl.h"
