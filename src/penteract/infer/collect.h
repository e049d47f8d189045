// Brings the parts of global tensors that the ranks hold to rank 0. Thread-safety: a rank's own thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "penteract/comm/group.h"
#include "penteract/topology/slice.h"

namespace penteract::infer {

// A part of global tensor number `tensor`.
struct Tile {
  int64_t tensor = 0;
  topology::Slice slice;
  at::Tensor values;  // contiguous, the slice's elements, of the collection's dtype
};

// Copies the tiles of every rank into `globals`, which rank 0 gives (contiguous, one dtype) and the others leave empty.
// An element that several ranks hold is that of the last one. Rank after rank, so rank 0 holds one rank's tiles at a
// time. COLLECTIVE: world.
void collect(const comm::Group& world, const std::vector<Tile>& tiles, at::ScalarType dtype,
             std::vector<at::Tensor>& globals);

}  // namespace penteract::infer
