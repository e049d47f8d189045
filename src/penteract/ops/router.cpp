#include "penteract/ops/router.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <vector>

#include "penteract/ops/aten/aten.h"
#include "penteract/ops/dispatch.h"

namespace penteract::ops {
namespace {

// The k largest of a row by repeated passes, lowest expert first among equals. A NaN is chosen only when nothing else
// is left, so the choice is always k different experts; the NaN reaches the loss through the probabilities.
template <class A>
void choose_largest(const A* scores, int64_t num_experts, int64_t k, int64_t* experts) {
  for (int64_t j = 0; j < k; ++j) {
    int64_t best = -1;
    for (int64_t e = 0; e < num_experts; ++e) {
      bool taken = false;
      for (int64_t i = 0; i < j; ++i) taken = taken || experts[i] == e;
      if (taken) continue;
      const bool better =
          best < 0 || scores[e] > scores[best] || (scores[best] != scores[best] && scores[e] == scores[e]);
      if (better) best = e;
    }
    experts[j] = best;
  }
}

}  // namespace

RouterChoice router_choose(const at::Tensor& logits, int64_t k, bool norm_topk_prob, const at::Tensor& bias,
                           const at::Tensor& replay) {
  const at::NoGradGuard no_grad;
  PENT_CHECK_EQ(logits.dim(), 2);
  check_contiguous(logits, "logits");
  PENT_CHECK(logits.scalar_type() != at::kBFloat16, "router logits are in the accumulate dtype");
  const int64_t tokens = logits.size(0), num_experts = logits.size(1);
  PENT_CHECK(k > 0 && k <= num_experts, "{} of {} experts", k, num_experts);
  RouterChoice choice{at::empty(logits.sizes(), logits.options()), at::empty({tokens, k}, logits.options()),
                      replay.defined() ? replay : at::empty({tokens, k}, logits.options().dtype(at::kLong))};
  check_contiguous(choice.experts, "experts");
  check_dtype(choice.experts, at::kLong, "experts");
  PENT_CHECK(choice.experts.dim() == 2 && choice.experts.size(0) == tokens && choice.experts.size(1) == k);
  if (bias.defined()) {
    check_contiguous(bias, "bias");
    check_dtype(bias, logits.scalar_type(), "bias");
    PENT_CHECK_EQ(bias.numel(), num_experts);
  }
  if (use_aten(logits, bias, replay)) {
    if (replay.defined() && replay.is_cpu()) {
      PENT_CHECK(replay.ge(0).logical_and_(replay.lt(num_experts)).all().item<bool>(), "an expert outside of 0 to {}",
                 num_experts - 1);
    }
    return aten::router_choose(logits, k, norm_topk_prob, bias, replay);
  }
  with_element_type(logits.scalar_type(), [&]<class A>(A) {
    if constexpr (!std::is_same_v<A, Bf16>) {
      const auto* in = data<A>(logits);
      auto *probs = data<A>(choice.probs), *weights = data<A>(choice.weights);
      auto* experts = data<int64_t>(choice.experts);
      const A* shift = bias.defined() ? data<A>(bias) : nullptr;
      at::parallel_for(0, tokens, rows_per_task(num_experts * k), [&](int64_t begin, int64_t end) {
        std::vector<A> scores(shift != nullptr ? num_experts : 0);
        for (int64_t t = begin; t < end; ++t) {
          const A* p = probs + t * num_experts;
          kernels<A>().row_softmax(in + t * num_experts, probs + t * num_experts, num_experts);
          for (size_t e = 0; e < scores.size(); ++e) scores[e] = p[e] + shift[e];
          if (!replay.defined()) choose_largest(scores.empty() ? p : scores.data(), num_experts, k, experts + t * k);
          A sum = 0;
          for (int64_t j = 0; j < k; ++j) {
            const int64_t e = experts[t * k + j];
            PENT_CHECK(e >= 0 && e < num_experts, "expert {} of {}", e, num_experts);
            weights[t * k + j] = p[e];
            sum += p[e];
          }
          if (!norm_topk_prob) continue;
          for (int64_t j = 0; j < k; ++j) weights[t * k + j] /= sum;
        }
      });
    }
  });
  return choice;
}

at::Tensor router_backward(const at::Tensor& dweights, const at::Tensor& dprobs_extra, const RouterChoice& choice,
                           bool norm_topk_prob) {
  const at::NoGradGuard no_grad;
  const auto& probs = choice.probs;
  const int64_t tokens = probs.size(0), num_experts = probs.size(1), k = choice.experts.size(1);
  if (dweights.defined()) {
    check_contiguous(dweights, "dweights");
    check_dtype(dweights, probs.scalar_type(), "dweights");
    PENT_CHECK_EQ(dweights.numel(), tokens * k);
  }
  if (dprobs_extra.defined()) {
    check_contiguous(dprobs_extra, "dprobs_extra");
    check_dtype(dprobs_extra, probs.scalar_type(), "dprobs_extra");
    PENT_CHECK_EQ(dprobs_extra.numel(), dprobs_extra.dim() == 1 ? num_experts : tokens * num_experts);
  }
  if (use_aten(probs, choice.weights, choice.experts, dweights, dprobs_extra)) {
    return aten::router_backward(dweights, dprobs_extra, choice, norm_topk_prob);
  }
  auto dlogits = at::empty(probs.sizes(), probs.options());
  with_element_type(probs.scalar_type(), [&]<class A>(A) {
    if constexpr (!std::is_same_v<A, Bf16>) {
      const auto* experts = data<int64_t>(choice.experts);
      at::parallel_for(0, tokens, rows_per_task(num_experts), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const A* p = data<A>(probs) + t * num_experts;
          A* d = data<A>(dlogits) + t * num_experts;  // first the gradient of the probabilities
          const A* extra = dprobs_extra.defined() ? data<A>(dprobs_extra) : nullptr;
          if (extra != nullptr && dprobs_extra.dim() == 2) extra += t * num_experts;
          for (int64_t e = 0; e < num_experts; ++e) d[e] = extra != nullptr ? extra[e] : A(0);
          if (dweights.defined()) {
            const A *dw = data<A>(dweights) + t * k, *w = data<A>(choice.weights) + t * k;
            A dot = 0, sum = 0;
            for (int64_t j = 0; j < k; ++j) dot += dw[j] * w[j], sum += p[experts[t * k + j]];
            for (int64_t j = 0; j < k; ++j) {
              d[experts[t * k + j]] += norm_topk_prob ? (dw[j] - dot) / sum : dw[j];
            }
          }
          A inner = 0;
          for (int64_t e = 0; e < num_experts; ++e) inner += p[e] * d[e];
          for (int64_t e = 0; e < num_experts; ++e) d[e] = p[e] * (d[e] - inner);
        }
      });
    }
  });
  return dlogits;
}

}  // namespace penteract::ops
