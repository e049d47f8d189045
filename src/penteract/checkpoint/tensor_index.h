// All catalogs of a step as one table: tensor -> dtype, shape, pieces; and the proof that pieces cover a slice once.
// Thread-safety: value types, pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "penteract/checkpoint/catalog.h"

namespace penteract::checkpoint {

struct PieceRef {
  size_t catalog;  // indexes of the catalogs given
  size_t piece;
};

struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape;
  std::vector<PieceRef> pieces;
};

using TensorIndex = std::map<std::string, TensorInfo>;

// Errors: checkpoint_malformed when the pieces of a tensor differ in dtype or shape.
Result<TensorIndex> index_tensors(const std::vector<Catalog>& catalogs);

// Whether `pieces` cover each element of `wanted` exactly once. `tensor` is for the message.
// Errors: checkpoint_malformed (twice), checkpoint_incomplete (not at all).
Status check_cover(const std::string& tensor, const topology::Slice& wanted, std::vector<topology::Slice> pieces);

// check_cover of every whole tensor: what a save promises.
Status check_cover(const TensorIndex& index, const std::vector<Catalog>& catalogs);

}  // namespace penteract::checkpoint
