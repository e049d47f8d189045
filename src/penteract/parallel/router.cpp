#include "penteract/parallel/router.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "penteract/ops/matmul.h"
#include "penteract/ops/op.h"
#include "penteract/ops/router.h"

namespace penteract::parallel {
namespace {

class Router : public ops::Op {
 public:
  Router(const RouterSpec& spec, WeightGradQueue* queue)
      : weight_(*spec.weight), bias_(spec.bias), norm_topk_prob_(spec.norm_topk_prob), queue_(queue) {}
  const char* name() const override { return "router"; }

  at::Tensor forward(const at::Tensor& x, int64_t k, const at::Tensor& replay, bool keep) {
    dtype_ = x.scalar_type();
    const at::Tensor wide = x.to(weight_.weight.scalar_type());
    logits_ = ops::matmul_nt(wide, weight_.use());
    choice_ = ops::router_choose(logits_, k, norm_topk_prob_, bias_ != nullptr ? bias_->use() : at::Tensor(), replay);
    if (keep) save(wide), save(choice_.probs), save(choice_.weights), save(choice_.experts);
    return choice_.weights;
  }

  std::vector<at::Tensor> backward(std::vector<at::Tensor> grads) override {
    const at::Tensor x = saved(0);
    const ops::RouterChoice choice{saved(1), saved(2), saved(3)};
    at::Tensor dlogits = ops::router_backward(grads[0], balancing_grad_, choice, norm_topk_prob_);
    // d(lse)/d(logits) are the probabilities.
    if (z_slope_.defined()) dlogits.addcmul_(choice.probs, z_slope_);
    queue_->push(weight_, [dlogits, x](at::Tensor main_grad) { ops::wgrad_accumulate(dlogits, x, main_grad); });
    return {ops::matmul_nn(dlogits, weight_.use()).to(dtype_)};
  }

  // Set in forward; the graph keeps only what save() holds.
  ops::RouterChoice take_choice() { return std::move(choice_); }
  at::Tensor take_logits() { return std::move(logits_); }
  void set_balancing_grad(at::Tensor grad) { balancing_grad_ = std::move(grad); }
  void set_z_slope(at::Tensor slope) { z_slope_ = std::move(slope); }

 private:
  const Parameter& weight_;
  const Parameter* bias_;
  bool norm_topk_prob_;
  WeightGradQueue* queue_;
  at::ScalarType dtype_ = at::kFloat;
  ops::RouterChoice choice_;
  at::Tensor logits_;
  at::Tensor balancing_grad_;  // d(balancing loss)/d(probs) [T, E]
  at::Tensor z_slope_;         // d(z-loss)/d(log sum exp) [T, 1]
};

// Choices of non-pad tokens: int64 [rows, E].
at::Tensor count_choices(const at::Tensor& experts, const at::Tensor& valid, int64_t rows, int64_t num_experts) {
  const at::Tensor row = at::arange(experts.size(0), experts.options()).remainder_(rows).unsqueeze(1);
  const at::Tensor place = (row * num_experts + experts).reshape({-1});
  const at::Tensor counted = valid.unsqueeze(1).expand_as(experts).to(at::kLong).reshape({-1});
  return at::zeros({rows * num_experts}, experts.options()).scatter_add_(0, place, counted).view({rows, num_experts});
}

// d(balancing loss)/d(probs) [T, E]. counts [rows, E]: of this rank's tokens. COLLECTIVE: tp·cp.
at::Tensor balancing_grad(const at::Tensor& probs, const at::Tensor& counts, const at::Tensor& valid, int64_t k,
                          const RouterLosses& losses) {
  const int64_t num_experts = probs.size(1), rows = losses.rows;
  // Column E carries the number of non-pad tokens of each row.
  const at::Tensor tokens = valid.view({-1, rows}).sum(0).to(at::kLong);
  at::Tensor totals = at::cat({counts, tokens.unsqueeze(1)}, 1);
  losses.tp_cp.all_reduce_sum(totals, {.tag = "balancing counts"});
  const auto dtype = probs.scalar_type();
  const at::Tensor num_tokens = totals.select(1, num_experts).clamp_min(1).to(dtype);  // [rows]
  const at::Tensor f =
      totals.narrow(1, 0, num_experts).to(dtype) * (static_cast<double>(num_experts) / k) / num_tokens.unsqueeze(1);
  const at::Tensor slope = f * losses.balance_per_row / num_tokens.unsqueeze(1);  // of the prob of a non-pad token
  const at::Tensor live = valid.view({-1, rows, 1}).to(dtype);
  return (live * slope.unsqueeze(0)).reshape({-1, num_experts});
}

// The least distance of a non-pad token's k-th largest score to the next one: how little would change a choice.
double smallest_gap(const at::Tensor& scores, const at::Tensor& valid, int64_t k) {
  double gap = std::numeric_limits<double>::infinity();
  if (k == scores.size(1)) return gap;
  const at::Tensor sorted = std::get<0>(scores.cpu().to(at::kDouble).sort(1, /*descending=*/true)).contiguous();
  const at::Tensor live = valid.cpu();
  const auto* s = sorted.data_ptr<double>();
  for (int64_t t = 0; t < sorted.size(0); ++t, s += sorted.size(1)) {
    if (live.data_ptr<bool>()[t]) gap = std::min(gap, s[k - 1] - s[k]);
  }
  return gap;
}

}  // namespace

Routing route(const at::Tensor& x, const RouterSpec& spec, const at::Tensor& valid, const at::Tensor& replay,
              const RouterLosses& losses, RoutingStats* stats, WeightGradQueue* queue) {
  const int64_t k = spec.num_experts_per_tok;
  auto op = std::make_shared<Router>(spec, queue);
  const at::Tensor weights =
      ops::record_one(op, {x}, [&](bool keep) { return op->forward(x.detach(), k, replay, keep); });
  const ops::RouterChoice choice = op->take_choice();
  const at::Tensor logits = op->take_logits();
  const Routing routing{weights, choice.experts};
  if (stats == nullptr) return routing;

  at::AutoGradMode off(false);
  const at::Tensor counts = count_choices(choice.experts, valid, losses.rows, choice.probs.size(1));
  stats->expert_counts[spec.layer].add_(counts.sum(0).to(stats->expert_counts.device()));
  if (stats->smallest_gap != nullptr) {
    const at::Tensor scores = spec.bias != nullptr ? choice.probs + spec.bias->use() : choice.probs;
    *stats->smallest_gap = std::min(*stats->smallest_gap, smallest_gap(scores, valid, k));
  }
  if (losses.balance_per_row != 0) {
    const at::Tensor grad = balancing_grad(choice.probs, counts, valid, k, losses);
    stats->aux_loss.add_((choice.probs * grad).sum().to(stats->aux_loss.options()));
    op->set_balancing_grad(grad);
  }
  if (losses.z_per_token != 0) {
    const at::Tensor lse = at::logsumexp(logits, {1}, true);  // [T, 1]
    const at::Tensor factor = valid.unsqueeze(1).to(lse.scalar_type()) * losses.z_per_token;
    stats->aux_loss.add_((factor * lse * lse).sum().to(stats->aux_loss.options()));
    op->set_z_slope(2 * factor * lse);
  }
  return routing;
}

}  // namespace penteract::parallel
