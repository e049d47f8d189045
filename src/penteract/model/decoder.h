// The generic decoder of a ModelSpec, as one pipeline rank holds it: embedding on the first stage, its layers, final
// norm and loss on the last. Built from groups and a ParamStore; asks no recipe and no global state.
// Thread-safety: a rank's own thread. Lifetime: the store and the groups outlive it.
#pragma once

#include <memory>
#include <vector>

#include "penteract/model/attention.h"
#include "penteract/model/block_context.h"
#include "penteract/model/mlp.h"
#include "penteract/parallel/param_store.h"

namespace penteract::model {

class Decoder {
 public:
  // padded_length: positions a sequence (topology::padded_length).
  Decoder(const spec::ModelSpec& model, const precision::Precision& precision, const parallel::Groups& groups,
          const parallel::ParamStore& store, int64_t padded_length, at::Device device);

  // The local matrices that the blocks want stored as one.
  static std::vector<parallel::Fusion> fusions(const spec::ModelSpec& model);

  // What a pass does besides computing the loss; each pointer may be null.
  struct Pass {
    double balance_per_row = 0, z_per_token = 0;  // parallel::RouterLosses
    parallel::RoutingStats* stats = nullptr;
    const Routes* replay = nullptr;
    Routes* record = nullptr;
    std::vector<at::Tensor>* logits = nullptr;  // [micro-batch] [T, V_local], written on the last stage
  };

  // One micro-batch through this rank's stage. input [T_sp, H], undefined on the first stage. Returns [T_sp, H], or on
  // the last stage the sum of the token losses (scalar, accumulate dtype; equal on all tp ranks).
  // COLLECTIVE: tp, cp, ep, etp; `logits` and the coefficients are given on all ranks or on none.
  at::Tensor forward(const MicroBatch& batch, const at::Tensor& input, const Pass& pass);

  int64_t vocab_first() const { return vocab_first_; }
  bool is_last_stage() const { return last_stage_; }

  // [T_sp, H]: what travels between stages for micro-batches of `rows` sequences.
  std::vector<int64_t> activation_shape(int64_t rows) const;
  parallel::WeightGradQueue& queue() { return queue_; }

 private:
  struct Layer {
    int index;
    const parallel::Parameter* input_norm;
    Attention attention;
    const parallel::Parameter* post_norm;
    std::unique_ptr<FeedForward> feed_forward;
  };

  const spec::ModelSpec& model_;
  const parallel::Groups& groups_;
  bool first_stage_, last_stage_;
  int64_t positions_local_;  // S
  ops::RopeTables rope_;
  parallel::WeightGradQueue queue_;
  at::Tensor anchor_;
  const parallel::Parameter* embedding_ = nullptr;
  const parallel::Parameter* final_norm_ = nullptr;
  const parallel::Parameter* head_ = nullptr;
  int64_t vocab_first_ = 0;  // global id of this rank's first row of embedding and head
  std::vector<Layer> layers_;
};

}  // namespace penteract::model
