#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

#include "penteract/ops/aten/aten.h"

namespace penteract::ops::aten {
namespace {

// Experts by falling score, lowest first among equals, NaN last: the sort itself takes a NaN for the largest number.
at::Tensor ranking(const at::Tensor& scores) {
  const double lowest = scores.scalar_type() == at::kDouble ? std::numeric_limits<double>::lowest()
                                                            : std::numeric_limits<float>::lowest();
  const auto keys = scores.clamp_min(lowest).masked_fill_(scores.isnan(), -std::numeric_limits<double>::infinity());
  return std::get<1>(at::sort(keys, /*stable=*/true, 1, /*descending=*/true));
}

}  // namespace

RouterChoice router_choose(const at::Tensor& logits, int64_t k, bool norm_topk_prob, const at::Tensor& bias,
                           const at::Tensor& replay) {
  RouterChoice choice;
  choice.probs = at::softmax(logits, 1);
  choice.experts = replay.defined()
                       ? replay
                       : ranking(bias.defined() ? choice.probs + bias : choice.probs).narrow(1, 0, k).contiguous();
  choice.weights = choice.probs.gather(1, choice.experts);
  if (norm_topk_prob) choice.weights = choice.weights / choice.weights.sum(1, true);
  return choice;
}

at::Tensor router_backward(const at::Tensor& dweights, const at::Tensor& dprobs_extra, const RouterChoice& choice,
                           bool norm_topk_prob) {
  const auto& probs = choice.probs;
  const auto dprobs = at::zeros_like(probs);
  if (dprobs_extra.defined()) dprobs.add_(dprobs_extra.dim() == 1 ? dprobs_extra : dprobs_extra.view(probs.sizes()));
  if (dweights.defined()) {
    auto d = dweights.view(choice.weights.sizes());
    if (norm_topk_prob) {
      d = (d - (d * choice.weights).sum(1, true)) / probs.gather(1, choice.experts).sum(1, true);
    }
    // The experts of a token differ: each element is added to once at most.
    dprobs.scatter_add_(1, choice.experts, d);
  }
  return probs * (dprobs - (probs * dprobs).sum(1, true));
}

}  // namespace penteract::ops::aten
