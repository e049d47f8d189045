// What every block of a decoder receives: groups, queue, positions, the micro-batch. Nothing here is global.
// Shapes: S = positions of this context-parallel rank, B = rows (sequences) of the micro-batch, T = S·B tokens,
// T_sp = T ÷ tp with sequence parallelism, else T. Token rows are sequence-major: row = position · B + sequence.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "penteract/ops/rope.h"
#include "penteract/parallel/groups.h"
#include "penteract/parallel/linear.h"
#include "penteract/parallel/router.h"

namespace penteract::model {

// The tokens of one micro-batch on one rank.
struct MicroBatch {
  int index = 0;           // among the micro-batches of this rank in the step
  int64_t rows = 1;        // B
  int64_t num_tokens = 0;  // of `ids` that are no pads
  at::Tensor ids;          // int64 [T]
  at::Tensor targets;      // int64 [T]; -1: no target
  at::Tensor valid;        // bool [T_sp]: false for pads
};

// The experts chosen in a pass: [layer][micro-batch] int64 [T_sp, K]; undefined where a layer has none or another stage
// holds it.
using Routes = std::vector<std::vector<at::Tensor>>;

struct BlockContext {
  const parallel::Groups* groups = nullptr;
  parallel::TensorParallel tensor_parallel;
  parallel::WeightGradQueue* queue = nullptr;
  ops::RopeTables rope;  // of this rank's positions
  const MicroBatch* batch = nullptr;
  parallel::RouterLosses router_losses;
  parallel::RoutingStats* stats = nullptr;  // null: nothing is counted, no auxiliary loss (evaluation, probe)
  const Routes* replay = nullptr;           // experts to take instead of the largest
  Routes* record = nullptr;
};

}  // namespace penteract::model
