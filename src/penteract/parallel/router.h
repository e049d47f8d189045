// The router of a mixture of experts and its layout-free auxiliary losses. Thread-safety: a rank's own thread.
#pragma once

#include <ATen/core/Tensor.h>

#include "penteract/comm/group.h"
#include "penteract/parallel/parameter.h"

namespace penteract::parallel {

// What is added to the loss, each a sum over tokens or rows with a factor of the global batch, so that it is the same in
// every layout:
// - balancing of sequences: coef/B · sum over rows b and experts e of f·P with f = E·n_be/(K·T_b), P = mean router
//   probability over the T_b non-pad tokens of row b, counts summed over tp·cp; B rows of the global batch.
// - router z-loss (Zoph et al. 2022, "ST-MoE", eq. 5): z_coef/N · sum over tokens of (log sum exp of the logits)², N the
//   non-pad tokens of the global batch.
struct RouterLosses {
  double balance_per_row = 0;  // coef / B; 0 = off
  double z_per_token = 0;      // z_coef / N; 0 = off
  comm::Group tp_cp;
  int64_t rows = 1;  // of this micro-batch
};

// The fixed part of a layer's router.
struct RouterSpec {
  const Parameter* weight = nullptr;  // [E, H], master dtype
  const Parameter* bias = nullptr;    // [E], master dtype, for the choice alone; null where the model has none
  int64_t num_experts_per_tok = 0;
  bool norm_topk_prob = false;
  int layer = 0;
};

// What the layers of a step add up, per rank; reduced once at the end of the step.
struct RoutingStats {
  at::Tensor aux_loss;             // scalar double: this rank's part of the auxiliary losses
  at::Tensor expert_counts;        // int64 [layers, E]: non-pad choices of this rank's tokens
  double* smallest_gap = nullptr;  // lowered to the least distance of a non-pad token's k-th score to the next one
};

struct Routing {
  at::Tensor weights;  // [T, K], master dtype, in the graph
  at::Tensor experts;  // int64 [T, K]
};

// x [T, H] (this rank's tokens, row = position · rows + sequence); valid bool [T]: false for pads, which count nowhere.
// replay: int64 [T, K] experts to take, or undefined. stats null: no auxiliary loss, nothing is counted.
// COLLECTIVE: tp·cp where balancing is on. Router arithmetic is in the weight's dtype, the master's.
Routing route(const at::Tensor& x, const RouterSpec& spec, const at::Tensor& valid, const at::Tensor& replay,
              const RouterLosses& losses, RoutingStats* stats, WeightGradQueue* queue);

}  // namespace penteract::parallel
