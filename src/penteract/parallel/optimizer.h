// AdamW over the owned shards of a ParamStore (ZeRO-1), with one exact global norm, clipping, and a skip of steps whose
// gradients are not finite. Thread-safety: a rank's own thread.
#pragma once

#include <cstdint>

#include "penteract/parallel/param_store.h"
#include "penteract/spec/run_spec.h"

namespace penteract::parallel {

struct GradNorm {
  double norm = 0;     // L2 norm of all gradients of the model, each global element once
  bool finite = true;  // false when any element on any rank is not finite
};

// REQUIRES: reduce_grads() done. COLLECTIVE: world. Equal on all ranks, in double, summed in rank order.
GradNorm global_grad_norm(ParamStore& store, const comm::Group& world);

// One AdamW update of the owned shards with gradients scaled by min(1, clip / norm) (clip 0: no clipping), then the
// weights are published. `update` counts updates from 1: a skipped step is none. COLLECTIVE: every class.
void adamw_update(ParamStore& store, const spec::OptimizerSpec& spec, double lr, int64_t update, double norm);

}  // namespace penteract::parallel
