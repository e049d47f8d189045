// Vocabulary-parallel embedding: each tp rank holds some rows of the table, equal or not.
// Thread-safety: a rank's own thread.
#pragma once

#include <ATen/core/Tensor.h>

#include "penteract/parallel/linear.h"

namespace penteract::parallel {

// ids int64 [T] (the positions of the whole tp group) -> [T_sp or T, H]. `first` is the global id of the weight's row 0.
// `anchor` is any tensor that requires grad: it makes the result part of a graph. COLLECTIVE: tp.
// BACKWARD: all-gather with sp; rows of the main gradient are added in token order.
at::Tensor vocab_embedding(const at::Tensor& ids, const Parameter& weight, int64_t first, const at::Tensor& anchor,
                           const TensorParallel& parallel);

}  // namespace penteract::parallel
