// The experts of one layer over the expert grid: experts over ep, their width over etp (SwiGLU, dropless).
// Thread-safety: a rank's own thread.
#pragma once

#include <ATen/core/Tensor.h>

#include "penteract/parallel/expert_plan.h"
#include "penteract/parallel/parameter.h"

namespace penteract::parallel {

struct ExpertWeights {
  const Parameter* gate_up = nullptr;  // [E_local, 2·I_local, H], gate rows first
  const Parameter* down = nullptr;     // [E_local, H, I_local]
};

// x [T, H] (tokens of this rank alone), weights [T, K] in the graph, plan from the same choices
// -> [T, H]: the weighted sum over the chosen experts; zero for pads.
// COLLECTIVE: ep and etp.   BACKWARD: the same exchanges, reversed.
at::Tensor mix_experts(const at::Tensor& x, const at::Tensor& weights, const ExpertPlan& plan,
                       const ExpertWeights& experts, const Groups& groups, WeightGradQueue* queue);

}  // namespace penteract::parallel
