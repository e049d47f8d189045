// The router of a mixture of experts and its layout-free balancing loss. Thread-safety: a rank's own thread.
#pragma once

#include <ATen/core/Tensor.h>

#include "penteract/comm/group.h"
#include "penteract/parallel/parameter.h"

namespace penteract::parallel {

// Per-sequence balancing (interface.md): loss + coef/B · sum over rows b and experts e of f·P with
// f = E·n_be/(K·T_b), P = mean router probability over the T_b non-pad tokens of row b, counts summed over tp·cp.
// B is the number of rows of the global batch, so the term is the same in every layout.
struct Balancing {
  double coef_per_row = 0;  // coef / B; 0 = off
  comm::Group tp_cp;
  int64_t rows = 1;  // of this micro-batch
};

// What the layers of a step add up, per rank; reduced once at the end of the step.
struct RoutingStats {
  at::Tensor aux_loss;       // scalar double: this rank's part of the balancing terms
  at::Tensor expert_counts;  // int64 [layers, E]: non-pad choices of this rank's tokens
};

struct Routing {
  at::Tensor weights;  // [T, K], master dtype, in the graph
  at::Tensor experts;  // int64 [T, K]
};

// x [T, H] (this rank's tokens, row = position · rows + sequence); valid bool [T]: false for pads, which count nowhere.
// COLLECTIVE: tp·cp where balancing is on. Router arithmetic is in the weight's dtype, the master's.
Routing route(const at::Tensor& x, const Parameter& weight, const at::Tensor& valid, int64_t num_experts_per_tok,
              bool norm_topk_prob, const Balancing& balancing, int layer, RoutingStats* stats, WeightGradQueue* queue);

}  // namespace penteract::parallel
