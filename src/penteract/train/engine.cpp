#include "penteract/train/engine.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "penteract/parallel/pipeline.h"
#include "penteract/schedule/action.h"
#include "penteract/topology/sequence.h"

namespace penteract::train {
namespace {

BatchShape shape_of(const spec::RunSpec& run) {
  return {run.data.seq_length, topology::padded_length(run.layout, run.data.seq_length), run.global_batch,
          run.micro_batch};
}

}  // namespace

Engine::Engine(const comm::RankContext& context, const spec::RunSpec& run, bool with_optimizer)
    : run_(run),
      grid_(run.layout),
      precision_(precision::make_precision(run.precision)),
      groups_(parallel::make_groups(context, grid_)),
      store_(context, run.model, grid_, precision_, model::Decoder::fusions(run.model), with_optimizer),
      shape_(shape_of(run)),
      decoder_(run.model, precision_, groups_, store_, shape_.padded) {}

int64_t Engine::global_targets(const std::vector<model::MicroBatch>& batches) const {
  at::Tensor count = at::zeros({1}, at::kLong);
  count.data_ptr<int64_t>()[0] = count_targets(batches);
  groups_.dp_cp.all_reduce_sum(count, {.tag = "target tokens"});
  return count.data_ptr<int64_t>()[0];
}

double Engine::run_schedule(const std::vector<model::MicroBatch>& batches, bool training, int64_t num_targets,
                            parallel::RoutingStats* stats) {
  const auto schedule =
      or_throw(schedule::make_schedule(training ? run_.layout.schedule : "forward_only", run_.layout.pp,
                                       run_.layout.vpp, static_cast<int>(batches.size())));
  parallel::PipelineOptions options;
  options.activation_shape = decoder_.activation_shape(run_.micro_batch);
  options.activation_dtype = precision_.compute;
  options.loss_scale = 1.0 / static_cast<double>(num_targets);
  options.training = training;
  options.drain_weight_grads = [this] { decoder_.queue().drain(); };
  const bool balance = training && run_.model.has_experts() && run_.router.balance == spec::Balance::sequence;
  const double coef_per_row = balance ? run_.router.coef / static_cast<double>(run_.global_batch) : 0;
  const bool counts_loss = groups_.coord.pp == run_.layout.pp - 1 && groups_.coord.tp == 0;
  double loss_sum = 0;
  auto forward = [&](int micro_batch, const at::Tensor& input) {
    const at::Tensor output = decoder_.forward(batches[micro_batch], input, coef_per_row, stats);
    if (counts_loss) loss_sum += output.item<double>();
    return output;
  };
  parallel::run_pipeline(schedule[groups_.coord.pp], groups_.pp, forward, options);
  return loss_sum;
}

StepResult Engine::forward_backward(const RowReader& read) {
  const auto batches = make_micro_batches(shape_, run_.layout, groups_.coord, read);
  StepResult result;
  result.target_tokens = global_targets(batches);
  if (result.target_tokens == 0) return result;

  store_.zero_grads();
  parallel::RoutingStats stats;
  const int64_t layers = run_.model.num_layers, experts = run_.model.num_experts;
  stats.aux_loss = at::zeros({}, at::kDouble);
  stats.expert_counts = at::zeros({layers, std::max<int64_t>(1, experts)}, at::kLong);
  const double loss_sum =
      run_schedule(batches, true, result.target_tokens, run_.model.has_experts() ? &stats : nullptr);
  store_.reduce_grads();
  const auto norm = parallel::global_grad_norm(store_, groups_.world);

  // One exchange for all that is only reported.
  at::Tensor report = at::zeros({2 + stats.expert_counts.numel()}, at::kDouble);
  report[0] = loss_sum;
  report[1] = stats.aux_loss;
  report.narrow(0, 2, stats.expert_counts.numel()).copy_(stats.expert_counts.view({-1}));
  groups_.world.all_reduce_sum(report, {.tag = "step report"});
  const double* values = report.data_ptr<double>();
  result.loss = values[0] / static_cast<double>(result.target_tokens);
  result.aux_loss = values[1];
  for (int64_t layer = 0; experts > 0 && layer < layers; ++layer) {
    const double* counts = values + 2 + layer * experts;
    double sum = 0, max = 0;
    for (int64_t e = 0; e < experts; ++e) sum += counts[e], max = std::max(max, counts[e]);
    if (sum > 0) result.max_expert_load = std::max(result.max_expert_load, max * static_cast<double>(experts) / sum);
  }
  result.nonfinite = !norm.finite || !std::isfinite(result.loss);
  result.grad_norm = norm.finite ? norm.norm : std::numeric_limits<double>::quiet_NaN();
  return result;
}

StepResult Engine::train_step(const RowReader& read, double lr, int64_t update) {
  const StepResult result = forward_backward(read);
  if (result.nonfinite || result.target_tokens == 0) return result;
  parallel::adamw_update(store_, run_.optimizer, lr, update, result.grad_norm);
  return result;
}

EvalResult Engine::eval_batch(const RowReader& read) {
  const at::AutoGradMode off(false);
  const auto batches = make_micro_batches(shape_, run_.layout, groups_.coord, read);
  EvalResult result;
  result.target_tokens = global_targets(batches);
  if (result.target_tokens == 0) return result;
  at::Tensor sum = at::zeros({1}, at::kDouble);
  sum.data_ptr<double>()[0] = run_schedule(batches, false, result.target_tokens, nullptr);
  groups_.world.all_reduce_sum(sum, {.tag = "evaluation"});
  result.loss_sum = sum.data_ptr<double>()[0];
  return result;
}

}  // namespace penteract::train
