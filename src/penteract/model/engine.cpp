#include "penteract/model/engine.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "penteract/parallel/pipeline.h"
#include "penteract/parallel/router_bias.h"
#include "penteract/schedule/action.h"
#include "penteract/topology/sequence.h"

namespace penteract::model {
namespace {

BatchShape shape_of(const spec::RunSpec& run) {
  return {run.data.seq_length, topology::padded_length(run.layout, run.data.seq_length), run.global_batch,
          run.micro_batch};
}

}  // namespace

Engine::Engine(const comm::RankContext& context, const spec::RunSpec& run, parallel::Holding holding)
    : run_(run),
      grid_(run.layout),
      precision_(precision::make_precision(run.precision)),
      groups_(parallel::make_groups(context, grid_)),
      store_(context, run.model, grid_, precision_, Decoder::fusions(run.model), holding),
      shape_(shape_of(run)),
      device_(context.device),
      decoder_(run.model, precision_, groups_, store_, shape_.padded, device_) {}

Engine::Totals Engine::totals_of(const std::vector<MicroBatch>& batches) const {
  at::Tensor count = at::zeros({2}, at::kLong);
  count.data_ptr<int64_t>()[0] = count_targets(batches);
  count.data_ptr<int64_t>()[1] = count_tokens(batches);
  groups_.dp_cp.all_reduce_sum(count, {.tag = "target tokens"});
  return {count.data_ptr<int64_t>()[0], count.data_ptr<int64_t>()[1]};
}

void Engine::to_device(std::vector<MicroBatch>& batches) const {
  for (MicroBatch& batch : batches) {
    for (at::Tensor* t : {&batch.ids, &batch.targets, &batch.valid}) *t = t->to(device_);
  }
}

double Engine::run_schedule(const std::vector<MicroBatch>& batches, bool training, double loss_scale,
                            Decoder::Pass pass, const Taps& taps) {
  const auto schedule =
      or_throw(schedule::make_schedule(training ? run_.layout.schedule : "forward_only", run_.layout.pp,
                                       run_.layout.vpp, static_cast<int>(batches.size())));
  parallel::PipelineOptions options;
  options.activation_shape = decoder_.activation_shape(run_.micro_batch);
  options.activation_options = at::TensorOptions().dtype(precision_.compute).device(device_);
  options.loss_scale = loss_scale;
  options.training = training;
  options.drain_weight_grads = [this] { decoder_.queue().drain(); };
  pass.replay = taps.replay;
  pass.record = taps.record;
  pass.logits = taps.logits;
  if (pass.record != nullptr) pass.record->assign(run_.model.num_layers, std::vector<at::Tensor>(batches.size()));
  if (pass.logits != nullptr) pass.logits->assign(batches.size(), {});
  const bool counts_loss = decoder_.is_last_stage() && groups_.coord.tp == 0;
  double loss_sum = 0;
  auto forward = [&](int micro_batch, const at::Tensor& input) {
    const at::Tensor output = decoder_.forward(batches[micro_batch], input, pass);
    if (counts_loss) loss_sum += output.item<double>();
    return output;
  };
  parallel::run_pipeline(schedule[groups_.coord.pp], groups_.pp, forward, options);
  return loss_sum;
}

StepResult Engine::forward_backward(const RowReader& read, const Taps& taps) {
  auto batches = make_micro_batches(shape_, run_.layout, groups_.coord, read);
  const Totals totals = totals_of(batches);
  to_device(batches);
  StepResult result;
  result.target_tokens = totals.targets;
  store_.zero_grads();
  if (totals.targets == 0) return result;

  parallel::RoutingStats stats;
  const int64_t layers = run_.model.num_layers, experts = run_.model.num_experts;
  stats.aux_loss = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device_));
  stats.expert_counts = at::zeros({layers, experts}, at::kLong);
  stats.smallest_gap = taps.smallest_gap;
  Decoder::Pass pass;
  if (run_.model.has_experts()) {
    pass.stats = &stats;
    if (run_.router.balance == spec::Balance::sequence)
      pass.balance_per_row = run_.router.coef / static_cast<double>(run_.global_batch);
    pass.z_per_token = run_.router.z_coef / static_cast<double>(totals.tokens);
  }
  const double loss_sum = run_schedule(batches, true, 1.0 / static_cast<double>(totals.targets), pass, taps);
  store_.reduce_grads();
  const auto norm = parallel::global_grad_norm(store_, groups_.world);

  // One exchange for what all ranks add up.
  at::Tensor report = at::zeros({2 + stats.expert_counts.numel()}, at::kDouble);
  report[0] = loss_sum;
  report[1] = stats.aux_loss.item<double>();
  report.narrow(0, 2, stats.expert_counts.numel()).copy_(stats.expert_counts.view({-1}));
  groups_.world.all_reduce_sum(report, {.tag = "step report"});
  const double* values = report.data_ptr<double>();
  result.loss = values[0] / static_cast<double>(totals.targets);
  result.aux_loss = values[1];
  result.expert_counts.assign(values + 2, values + report.numel());
  for (int64_t layer = 0; layer < layers && experts > 0; ++layer) {
    const auto first = result.expert_counts.begin() + layer * experts, last = first + experts;
    const auto sum = static_cast<double>(std::accumulate(first, last, int64_t{0}));
    const auto max = static_cast<double>(*std::max_element(first, last));
    if (sum > 0) result.max_expert_load = std::max(result.max_expert_load, max * static_cast<double>(experts) / sum);
  }
  result.nonfinite = !norm.finite || !std::isfinite(result.loss);
  result.grad_norm = norm.finite ? norm.norm : std::numeric_limits<double>::quiet_NaN();
  return result;
}

StepResult Engine::train_step(const RowReader& read, double lr, int64_t update, const Taps& taps) {
  const StepResult result = forward_backward(read, taps);
  if (result.nonfinite || result.target_tokens == 0) return result;
  if (run_.router.balance == spec::Balance::bias && run_.model.has_experts())
    parallel::update_router_biases(store_, result.expert_counts, run_.router.bias_rate);
  parallel::adamw_update(store_, run_.optimizer, lr, update, result.grad_norm);
  return result;
}

EvalResult Engine::eval_batch(const RowReader& read, const Taps& taps) {
  const at::AutoGradMode off(false);
  auto batches = make_micro_batches(shape_, run_.layout, groups_.coord, read);
  EvalResult result;
  result.target_tokens = totals_of(batches).targets;
  to_device(batches);
  at::Tensor sum = at::zeros({1}, at::kDouble);
  sum.data_ptr<double>()[0] = run_schedule(batches, false, 1, {}, taps);
  groups_.world.all_reduce_sum(sum, {.tag = "evaluation"});
  result.loss_sum = sum.data_ptr<double>()[0];
  return result;
}

}  // namespace penteract::model
