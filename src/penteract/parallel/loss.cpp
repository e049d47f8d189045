#include "penteract/parallel/loss.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "penteract/ops/cross_entropy.h"
#include "penteract/ops/matmul.h"
#include "penteract/ops/op.h"

namespace penteract::parallel {
namespace {

class VocabParallelLoss : public ops::Op {
 public:
  VocabParallelLoss(const Parameter& head, int64_t first, TensorParallel parallel)
      : head_(head), first_(first), parallel_(std::move(parallel)) {}
  const char* name() const override { return "vocab_parallel_loss"; }

  at::Tensor forward(const at::Tensor& hidden, const at::Tensor& targets, bool keep) {
    const at::Tensor full = gather_rows_over_tp(hidden, parallel_);
    const at::Tensor logits = ops::matmul_nt(full, head_.use());
    at::Tensor max = ops::row_max(logits);
    parallel_.tp.all_reduce_max(max, {.tag = "loss maximum"});
    at::Tensor sum = ops::row_sum_exp(logits, max);
    parallel_.tp.all_reduce_sum(sum, {.tag = "loss sum"});
    at::Tensor target = ops::target_logits(logits, targets, first_);
    parallel_.tp.all_reduce_sum(target, {.tag = "loss target"});
    const at::Tensor lse = max + sum.log();
    if (keep) save(full), save(logits), save(lse), save(targets);
    return at::where(targets.ge(0), lse - target, at::zeros_like(lse)).sum();
  }

  std::vector<at::Tensor> backward(std::vector<at::Tensor> grads) override {
    const at::Tensor x = saved(0), lse = saved(2), targets = saved(3);
    // The logits are not needed again: they become their own gradient.
    at::Tensor dlogits = saved(1);
    const at::Tensor dloss = targets.ge(0).to(lse.scalar_type()) * grads[0];
    ops::cross_entropy_backward_(dlogits, lse, targets, first_, dloss);
    const at::Tensor dx = ops::matmul_nn(dlogits, head_.use());
    parallel_.queue->push(head_, [dlogits, x](at::Tensor main_grad) { ops::wgrad_accumulate(dlogits, x, main_grad); });
    return {reduce_rows(dx, parallel_)};
  }

 private:
  const Parameter& head_;
  int64_t first_;
  TensorParallel parallel_;
};

}  // namespace

at::Tensor vocab_parallel_loss(const at::Tensor& hidden, const Parameter& head, int64_t first,
                               const at::Tensor& targets, const TensorParallel& parallel) {
  auto op = std::make_shared<VocabParallelLoss>(head, first, parallel);
  return ops::record_one(op, {hidden}, [&](bool keep) { return op->forward(hidden, targets, keep); });
}

at::Tensor vocab_parallel_logits(const at::Tensor& hidden, const Parameter& head, const TensorParallel& parallel) {
  const at::AutoGradMode off(false);
  return ops::matmul_nt(gather_rows_over_tp(hidden.detach(), parallel), head.use());
}

}  // namespace penteract::parallel
