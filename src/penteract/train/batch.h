// Cuts the rows of a global batch into the micro-batches of one rank. The same rows give the same tokens to the same
// positions in every layout. Thread-safety: a rank's own thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "penteract/model/block_context.h"
#include "penteract/topology/rank_grid.h"

namespace penteract::train {

// Fills seq_length + 1 tokens of a row of the global batch; false: the batch has no such row (it is all pads).
using RowReader = std::function<bool(int64_t row, int32_t* tokens)>;

struct BatchShape {
  int64_t seq_length = 0;
  int64_t padded = 0;  // topology::padded_length
  int64_t global_rows = 0;
  int64_t micro_rows = 1;
};

// This rank's micro-batches, in order: micro-batch m of data-parallel rank d holds the global rows
// (m·dp + d)·micro ... + micro. Position p has input tokens[p] and target tokens[p + 1]; positions from seq_length on
// are pads: input 0, no target, not valid.
std::vector<model::MicroBatch> make_micro_batches(const BatchShape& shape, const topology::Layout& layout,
                                                  const topology::Coord& coord, const RowReader& read);

// Targets in the micro-batches of this rank.
int64_t count_targets(const std::vector<model::MicroBatch>& batches);

}  // namespace penteract::train
