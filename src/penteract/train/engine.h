// One rank of a run: groups, parameters, decoder; a training step and an evaluation batch over all ranks.
// Thread-safety: a rank's own thread. COLLECTIVE: world, for everything but the constructor and accessors.
#pragma once

#include <memory>
#include <optional>

#include "penteract/model/decoder.h"
#include "penteract/parallel/optimizer.h"
#include "penteract/spec/run_spec.h"
#include "penteract/train/batch.h"

namespace penteract::train {

struct StepResult {
  double loss = 0;             // sum of token losses ÷ target tokens of the global batch; no auxiliary term
  double aux_loss = 0;         // the balancing terms of all layers
  double grad_norm = 0;        // before clipping; NaN or inf where it is not finite
  int64_t target_tokens = 0;   // of the global batch
  double max_expert_load = 0;  // largest count of an expert ÷ the mean, worst layer; 0 without experts
  bool nonfinite = false;      // skipped: nothing was updated
};

struct EvalResult {
  double loss_sum = 0;
  int64_t target_tokens = 0;
};

class Engine {
 public:
  // `with_optimizer` false: weights only.
  Engine(const comm::RankContext& context, const spec::RunSpec& run, bool with_optimizer);

  Engine(const Engine&) = delete;  // the decoder refers to members
  Engine& operator=(const Engine&) = delete;

  void init_weights() { store_.init_weights(run_.seed); }

  // Forward and backward of a global batch; gradients are reduced. Without update.
  StepResult forward_backward(const RowReader& read);
  // The whole step: forward_backward, then clip and AdamW with `lr`, unless gradients are not finite. `update` counts
  // the updates made so far, plus one. A batch without targets changes nothing.
  StepResult train_step(const RowReader& read, double lr, int64_t update);
  // Loss over a global batch, forward only.
  EvalResult eval_batch(const RowReader& read);

  parallel::ParamStore& store() { return store_; }
  const parallel::Groups& groups() const { return groups_; }
  const BatchShape& batch_shape() const { return shape_; }

 private:
  // Runs the schedule; returns this rank's sum of token losses, counted on one rank of each tp group.
  double run_schedule(const std::vector<model::MicroBatch>& batches, bool training, int64_t num_targets,
                      parallel::RoutingStats* stats);
  int64_t global_targets(const std::vector<model::MicroBatch>& batches) const;

  const spec::RunSpec& run_;
  topology::RankGrid grid_;
  precision::Precision precision_;
  parallel::Groups groups_;
  parallel::ParamStore store_;
  BatchShape shape_;
  model::Decoder decoder_;
};

}  // namespace penteract::train
