#include "penteract/parallel/optimizer.h"

#include <ATen/ops/empty.h>

#include <cmath>

#include "penteract/ops/adamw.h"

namespace penteract::parallel {

GradNorm global_grad_norm(ParamStore& store, const comm::Group& world) {
  double sum = 0;
  bool finite = true;
  for (const FlatBuffer& b : store.buffers()) {
    const auto part = ops::sum_of_squares(b.grad_shard());
    sum += part.sum;
    finite &= part.finite;
  }
  at::Tensor total = at::empty({2}, at::kDouble);
  total.data_ptr<double>()[0] = finite ? sum : 0;
  total.data_ptr<double>()[1] = finite ? 0 : 1;
  world.all_reduce_sum(total, {.tag = "gradient norm"});
  const double norm = std::sqrt(total.data_ptr<double>()[0]);
  return {norm, total.data_ptr<double>()[1] == 0 && std::isfinite(norm)};
}

void adamw_update(ParamStore& store, const spec::OptimizerSpec& spec, double lr, int64_t update, double norm) {
  ops::AdamwStep step;
  step.lr = lr;
  step.beta1 = spec.beta1, step.beta2 = spec.beta2, step.eps = spec.eps;
  step.step = update;
  if (spec.clip_grad_norm > 0 && norm > spec.clip_grad_norm) step.grad_scale = spec.clip_grad_norm / norm;
  for (FlatBuffer& b : store.buffers()) {
    const at::Tensor grad = b.grad_shard();
    // Runs of pieces with one decay rule, as long as they are.
    int64_t first = 0, count = 0;
    bool decay = false;
    auto flush = [&] {
      if (count == 0) return;
      step.weight_decay = decay ? spec.weight_decay : 0;
      ops::adamw_step(b.master.narrow(0, first, count), b.exp_avg.narrow(0, first, count),
                      b.exp_avg_sq.narrow(0, first, count), grad.narrow(0, first, count), step);
    };
    for (const OwnedPiece& piece : store.owned_pieces(b)) {
      const bool piece_decay = store.table()[piece.param].decay;
      if (count > 0 && piece_decay == decay) {
        count += piece.count;
        continue;
      }
      flush();
      first = piece.shard_first, count = piece.count, decay = piece_decay;
    }
    flush();
  }
  store.publish_weights();
}

}  // namespace penteract::parallel
