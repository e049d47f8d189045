#include "penteract/model/decoder.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "penteract/parallel/embedding.h"
#include "penteract/parallel/loss.h"
#include "penteract/parallel/norm.h"
#include "penteract/spec/rope.h"
#include "penteract/topology/sequence.h"

namespace penteract::model {
namespace {
constexpr const char* kEmbedding = "model.embed_tokens.weight";
}  // namespace

std::vector<parallel::Fusion> Decoder::fusions(const spec::ModelSpec& m) {
  std::vector<parallel::Fusion> all;
  for (int layer = 0; layer < m.num_layers; ++layer) {
    all.push_back(Attention::fusion(layer));
    all.push_back(feed_forward_fusion(m, layer));
  }
  return all;
}

Decoder::Decoder(const spec::ModelSpec& m, const precision::Precision& precision, const parallel::Groups& groups,
                 const parallel::ParamStore& store, int64_t padded_length, at::Device device)
    : model_(m),
      groups_(groups),
      first_stage_(groups.coord.pp == 0),
      last_stage_(groups.coord.pp == groups.layout.pp - 1) {
  // Rotary tables cover the whole of a context-parallel rank's positions: attention runs on gathered tokens.
  topology::Layout without_sp = groups.layout;
  without_sp.sp = false;
  const auto positions = topology::local_positions(without_sp, groups.coord.cp, groups.coord.tp, padded_length);
  positions_local_ = static_cast<int64_t>(positions.size());
  rope_ = ops::make_rope_tables(positions, spec::rope_frequencies(m), precision::accumulate_dtype(precision.compute));
  rope_ = {rope_.cos.to(device), rope_.sin.to(device)};
  anchor_ = at::zeros({1}, at::TensorOptions().dtype(precision.compute).device(device)).set_requires_grad(true);

  const std::string head = m.tie_embeddings ? kEmbedding : "lm_head.weight";
  for (const auto& param : store.table()) {
    if (param.name == kEmbedding) {
      vocab_first_ = spec::local_slice(param, groups.layout, groups.coord).offset[0];
    }
  }
  if (first_stage_) embedding_ = store.get(kEmbedding);
  if (last_stage_) {
    final_norm_ = store.get("model.norm.weight");
    head_ = store.get(head);
  }
  for (int layer = 0; layer < m.num_layers; ++layer) {
    if (store.stage_of_layer()[layer] != groups.coord.pp) continue;
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    layers_.push_back({layer, store.get(prefix + "input_layernorm.weight"), Attention(m, layer, store, groups),
                       store.get(prefix + "post_attention_layernorm.weight"), make_feed_forward(m, layer, store)});
  }
}

std::vector<int64_t> Decoder::activation_shape(int64_t rows) const {
  return {positions_local_ * rows / (groups_.layout.sp ? groups_.layout.tp : 1), model_.hidden_size};
}

at::Tensor Decoder::forward(const MicroBatch& batch, const at::Tensor& input, const Pass& pass) {
  BlockContext context;
  context.groups = &groups_;
  context.tensor_parallel = {groups_.tp, groups_.layout.sp, &queue_};
  context.queue = &queue_;
  context.rope = rope_;
  context.batch = &batch;
  context.router_losses = {pass.balance_per_row, pass.z_per_token, groups_.tp_cp, batch.rows};
  context.stats = pass.stats;
  context.replay = pass.replay;
  context.record = pass.record;

  at::Tensor x = first_stage_
                     ? parallel::vocab_embedding(batch.ids, *embedding_, vocab_first_, anchor_, context.tensor_parallel)
                     : input;
  for (const Layer& layer : layers_) {
    x = x + layer.attention.forward(parallel::rms_norm(x, *layer.input_norm, model_.norm_eps, &queue_), context);
    x = x + layer.feed_forward->forward(parallel::rms_norm(x, *layer.post_norm, model_.norm_eps, &queue_), context);
  }
  if (!last_stage_) return x;
  x = parallel::rms_norm(x, *final_norm_, model_.norm_eps, &queue_);
  if (pass.logits != nullptr)
    (*pass.logits)[batch.index] = parallel::vocab_parallel_logits(x, *head_, context.tensor_parallel);
  return parallel::vocab_parallel_loss(x, *head_, vocab_first_, batch.targets, context.tensor_parallel);
}

}  // namespace penteract::model
