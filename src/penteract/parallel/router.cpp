#include "penteract/parallel/router.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include "penteract/ops/matmul.h"
#include "penteract/ops/op.h"
#include "penteract/ops/router.h"

namespace penteract::parallel {
namespace {

class Router : public ops::Op {
 public:
  Router(const Parameter& weight, bool norm_topk_prob, WeightGradQueue* queue)
      : weight_(weight), norm_topk_prob_(norm_topk_prob), queue_(queue) {}
  const char* name() const override { return "router"; }

  at::Tensor forward(const at::Tensor& x, int64_t k, bool keep) {
    dtype_ = x.scalar_type();
    const at::Tensor wide = x.to(weight_.weight.scalar_type());
    choice_ = ops::router_choose(ops::matmul_nt(wide, weight_.use()), k, norm_topk_prob_);
    if (keep) save(wide), save(choice_.probs), save(choice_.weights), save(choice_.experts);
    return choice_.weights;
  }

  std::vector<at::Tensor> backward(std::vector<at::Tensor> grads) override {
    const at::Tensor x = saved(0);
    const ops::RouterChoice choice{saved(1), saved(2), saved(3)};
    const at::Tensor dlogits = ops::router_backward(grads[0], balancing_grad_, choice, norm_topk_prob_);
    queue_->push(weight_, [dlogits, x](at::Tensor main_grad) { ops::wgrad_accumulate(dlogits, x, main_grad); });
    return {ops::matmul_nn(dlogits, weight_.use()).to(dtype_)};
  }

  // Set in forward; the graph keeps only what save() holds.
  ops::RouterChoice take_choice() { return std::move(choice_); }
  void set_balancing_grad(at::Tensor grad) { balancing_grad_ = std::move(grad); }

 private:
  const Parameter& weight_;
  bool norm_topk_prob_;
  WeightGradQueue* queue_;
  at::ScalarType dtype_ = at::kFloat;
  ops::RouterChoice choice_;
  at::Tensor balancing_grad_;  // d(balancing loss)/d(probs) [T, E]
};

// Choices of non-pad tokens: int64 [rows, E].
at::Tensor count_choices(const at::Tensor& experts, const at::Tensor& valid, int64_t rows, int64_t num_experts) {
  at::Tensor counts = at::zeros({rows, num_experts}, at::kLong);
  auto* n = counts.data_ptr<int64_t>();
  const auto* e = experts.data_ptr<int64_t>();
  const auto* ok = valid.data_ptr<bool>();
  const int64_t k = experts.size(1);
  for (int64_t t = 0; t < experts.size(0); ++t) {
    if (!ok[t]) continue;
    for (int64_t i = 0; i < k; ++i) ++n[(t % rows) * num_experts + e[t * k + i]];
  }
  return counts;
}

}  // namespace

Routing route(const at::Tensor& x, const Parameter& weight, const at::Tensor& valid, int64_t num_experts_per_tok,
              bool norm_topk_prob, const Balancing& balancing, int layer, RoutingStats* stats, WeightGradQueue* queue) {
  auto op = std::make_shared<Router>(weight, norm_topk_prob, queue);
  const at::Tensor weights =
      ops::record_one(op, {x}, [&](bool keep) { return op->forward(x.detach(), num_experts_per_tok, keep); });
  const ops::RouterChoice choice = op->take_choice();
  const Routing routing{weights, choice.experts};
  if (stats == nullptr) return routing;

  at::AutoGradMode off(false);
  const int64_t num_experts = choice.probs.size(1), rows = balancing.rows;
  at::Tensor counts = count_choices(choice.experts, valid, rows, num_experts);
  stats->expert_counts[layer].add_(counts.sum(0));
  if (balancing.coef_per_row == 0) return routing;

  // Column E carries the number of non-pad tokens of each row.
  const at::Tensor tokens = valid.view({-1, rows}).sum(0).to(at::kLong);
  at::Tensor totals = at::cat({counts, tokens.unsqueeze(1)}, 1);
  balancing.tp_cp.all_reduce_sum(totals, {.tag = "balancing counts"});
  const auto dtype = choice.probs.scalar_type();
  const at::Tensor num_tokens = totals.select(1, num_experts).clamp_min(1).to(dtype);  // [rows]
  const at::Tensor f = totals.narrow(1, 0, num_experts).to(dtype) *
                       (static_cast<double>(num_experts) / num_experts_per_tok) / num_tokens.unsqueeze(1);
  const at::Tensor slope = f * balancing.coef_per_row / num_tokens.unsqueeze(1);  // d(loss)/d(prob of a non-pad token)
  const at::Tensor live = valid.view({-1, rows, 1}).to(dtype);
  const at::Tensor grad = (live * slope.unsqueeze(0)).reshape({-1, num_experts});  // [T, E]
  stats->aux_loss.add_((choice.probs * grad).sum().to(at::kDouble));
  op->set_balancing_grad(grad);
  return routing;
}

}  // namespace penteract::parallel
