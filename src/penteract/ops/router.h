// The choice of experts: softmax over E, the k largest, their weights (Fedus et al. 2021; Qwen3-MoE's order).
// The choice is our own selection: equal probabilities go to the lowest expert, so it never depends on a library.
// Thread-safety: pure functions. Deterministic. Router arithmetic runs in the accumulate dtype throughout.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace penteract::ops {

struct RouterChoice {
  at::Tensor probs;    // [T, E]
  at::Tensor weights;  // [T, K]
  at::Tensor experts;  // int64 [T, K], by falling score
};

// logits [T, E] (float or double). norm_topk_prob divides the weights by their sum.
// bias: [E] in the logits' dtype, added to the probabilities for the choice alone, never to a weight (Wang et al. 2024,
// "Auxiliary-loss-free load balancing"), or undefined. replay: int64 [T, K] experts of an earlier choice to take instead
// of the largest, or undefined.
RouterChoice router_choose(const at::Tensor& logits, int64_t k, bool norm_topk_prob, const at::Tensor& bias = {},
                           const at::Tensor& replay = {});

// dlogits [T, E] from dweights [T, K] (or undefined) and dprobs_extra: undefined, [E] (the same for all tokens) or
// [T, E], a gradient that reaches the probabilities by another way (balancing).
at::Tensor router_backward(const at::Tensor& dweights, const at::Tensor& dprobs_extra, const RouterChoice& choice,
                           bool norm_topk_prob);

}  // namespace penteract::ops
