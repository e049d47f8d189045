// Reads slices of the tensors of a step, whatever layout wrote it. Verifies what it reads.
// Thread-safety: several threads may read at once; a piece's bytes are checked once a Reader.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "penteract/base/result.h"
#include "penteract/checkpoint/state_file.h"
#include "penteract/checkpoint/tensor_index.h"
#include "penteract/topology/slice.h"

namespace penteract::checkpoint {

class Reader {
 public:
  // Reads state.json and every catalog. Errors: those of step_directory.h.
  static Result<std::unique_ptr<Reader>> open(const std::string& step_dir);
  ~Reader();

  const SharedState& state() const;
  bool has(const std::string& tensor) const;
  const TensorInfo* find(const std::string& tensor) const;  // null when absent
  std::vector<TensorInfo> tensors() const;                  // by name

  // The elements of `slice` into `out` (CPU, contiguous, that many elements, any shape), cast to out's dtype: between
  // floating types, rounded to nearest even; otherwise out must have the stored dtype. Each element must be stored
  // once. The first read of a piece reads all of it and compares its checksum; later ones read only what they need.
  // Errors: checkpoint_mismatch (no such tensor, another shape or kind of dtype), checkpoint_damaged (a checksum),
  // checkpoint_incomplete, storage_read. `out` is undefined after an error.
  Status read(const std::string& tensor, const topology::Slice& slice, const at::Tensor& out) const;

 private:
  struct State;
  explicit Reader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace penteract::checkpoint
