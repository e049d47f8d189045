// Cuts the rows of a global batch into the micro-batches of one rank. The same rows give the same tokens to the same
// positions in every layout. Thread-safety: a rank's own thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "penteract/model/block_context.h"
#include "penteract/topology/rank_grid.h"

namespace penteract::model {

// One row of a global batch: position p has input tokens[p]; tokens[p + 1] is its target where is_target[p].
struct Row {
  std::vector<int32_t> tokens;     // [seq_length + 1]
  std::vector<uint8_t> is_target;  // [seq_length]; all 1 before the reader sees it
};

// Fills a row of the global batch; false: the batch has no such row (it is all pads).
using RowReader = std::function<bool(int64_t row, Row& out)>;

struct BatchShape {
  int64_t seq_length = 0;
  int64_t padded = 0;  // topology::padded_length
  int64_t global_rows = 0;
  int64_t micro_rows = 1;
};

// This rank's micro-batches, in order: micro-batch m of data-parallel rank d holds the global rows
// (m·dp + d)·micro ... + micro. Positions from seq_length on are pads: input 0, no target, not valid. A position that is
// no target is valid all the same: it is routed and attended to.
std::vector<MicroBatch> make_micro_batches(const BatchShape& shape, const topology::Layout& layout,
                                           const topology::Coord& coord, const RowReader& read);

// Targets in the micro-batches of this rank.
int64_t count_targets(const std::vector<MicroBatch>& batches);
// Tokens that are no pads in the micro-batches of this rank, each once a tp group.
int64_t count_tokens(const std::vector<MicroBatch>& batches);

// Where the local token rows of one micro-batch lie in the global batch [rows, seq_length].
class TokenPlaces {
 public:
  // The tokens of a rank's sequence-parallel part (as MicroBatch::valid), or with `gathered` of all its tp group
  // (as MicroBatch::ids).
  TokenPlaces(const BatchShape& shape, const topology::Layout& layout, const topology::Coord& coord,
              int64_t micro_batch, bool gathered);

  // Copies the rows of local [T, ...] that are in the global batch into global [rows, seq_length, ...].
  void to_global(const at::Tensor& local, at::Tensor global) const;
  // The reverse: [T, ...] of global's dtype; tokens outside of `global` are zero.
  at::Tensor to_local(const at::Tensor& global) const;
  // visit(local row, global row, position) of each token inside [rows, seq_length).
  void for_each(int64_t rows, const std::function<void(int64_t, int64_t, int64_t)>& visit) const;

 private:
  int64_t seq_length_, first_row_, micro_rows_;
  std::vector<int64_t> positions_;
};

}  // namespace penteract::model
