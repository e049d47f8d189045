// One rank of a run: groups, parameters, decoder; a training step and an evaluation batch over all ranks.
// Thread-safety: a rank's own thread. COLLECTIVE: world, for everything but the constructor and accessors.
#pragma once

#include <memory>
#include <optional>

#include "penteract/model/batch.h"
#include "penteract/model/decoder.h"
#include "penteract/parallel/optimizer.h"
#include "penteract/spec/run_spec.h"

namespace penteract::model {

struct StepResult {
  double loss = 0;                     // sum of token losses ÷ target tokens of the global batch; no auxiliary term
  double aux_loss = 0;                 // the auxiliary losses of all layers: balancing and z-loss
  double grad_norm = 0;                // before clipping; NaN or inf where it is not finite
  int64_t target_tokens = 0;           // of the global batch
  double max_expert_load = 0;          // largest count of an expert ÷ the mean, worst layer; 0 without experts
  bool nonfinite = false;              // skipped: nothing was updated
  std::vector<int64_t> expert_counts;  // [layers · E] choices of non-pad tokens of the global batch
};

struct EvalResult {
  double loss_sum = 0;
  int64_t target_tokens = 0;
};

// What a pass takes and leaves besides its result; each may be null.
struct Taps {
  const Routes* replay = nullptr;             // Decoder::Pass
  Routes* record = nullptr;                   // resized here
  std::vector<at::Tensor>* logits = nullptr;  // resized here; given on all ranks or on none
  double* smallest_gap = nullptr;             // RoutingStats, of this rank's tokens; training only
};

class Engine {
 public:
  // Lifetime: `run` outlives it.
  Engine(const comm::RankContext& context, const spec::RunSpec& run, parallel::Holding holding);

  Engine(const Engine&) = delete;  // the decoder refers to members
  Engine& operator=(const Engine&) = delete;

  void init_weights() { store_.init_weights(run_.seed); }

  // Forward and backward of a global batch; gradients are reduced. Without update.
  StepResult forward_backward(const RowReader& read, const Taps& taps = {});
  // The whole step: forward_backward, then clip, AdamW with `lr` and the router biases, unless gradients are not finite.
  // `update` counts the updates made so far, plus one. A batch without targets changes nothing.
  StepResult train_step(const RowReader& read, double lr, int64_t update, const Taps& taps = {});
  // Loss over a global batch, forward only, without auxiliary losses. Runs without targets too.
  EvalResult eval_batch(const RowReader& read, const Taps& taps = {});

  parallel::ParamStore& store() { return store_; }
  const parallel::Groups& groups() const { return groups_; }
  const BatchShape& batch_shape() const { return shape_; }
  const Decoder& decoder() const { return decoder_; }

 private:
  struct Totals {
    int64_t targets = 0, tokens = 0;  // of the global batch
  };
  // Runs the schedule; returns this rank's sum of token losses, counted on one rank of each tp group.
  double run_schedule(const std::vector<MicroBatch>& batches, bool training, double loss_scale, Decoder::Pass pass,
                      const Taps& taps);
  Totals totals_of(const std::vector<MicroBatch>& batches) const;
  void to_device(std::vector<MicroBatch>& batches) const;

  const spec::RunSpec& run_;
  topology::RankGrid grid_;
  precision::Precision precision_;
  parallel::Groups groups_;
  parallel::ParamStore store_;
  BatchShape shape_;
  at::Device device_;
  Decoder decoder_;
};

}  // namespace penteract::model
