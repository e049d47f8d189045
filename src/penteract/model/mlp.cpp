#include "penteract/model/mlp.h"

#include <fmt/format.h>

#include "penteract/base/check.h"
#include "penteract/parallel/expert.h"
#include "penteract/parallel/gated.h"

namespace penteract::model {
namespace {

std::string prefix(int layer) { return fmt::format("model.layers.{}.mlp.", layer); }

// COLLECTIVE: tp.
class DenseMlp : public FeedForward {
 public:
  DenseMlp(const spec::ModelSpec& m, int layer, const parallel::ParamStore& store)
      : gate_up_(store.get(feed_forward_fusion(m, layer))), down_(store.get(prefix(layer) + "down_proj.weight")) {}

  at::Tensor forward(const at::Tensor& x, const BlockContext& c) const override {
    const at::Tensor hidden = parallel::gated(parallel::column_linear(x, gate_up_, c.tensor_parallel));
    return parallel::row_linear(hidden, *down_, c.tensor_parallel);
  }

 private:
  std::vector<const parallel::Parameter*> gate_up_;
  const parallel::Parameter* down_;
};

// COLLECTIVE: ep, etp; tp·cp where balancing is on.
class MoeMlp : public FeedForward {
 public:
  MoeMlp(const spec::ModelSpec& m, int layer, const parallel::ParamStore& store)
      : num_experts_(m.num_experts),
        router_{store.get(prefix(layer) + "gate.weight"),
                m.router_bias ? store.get(prefix(layer) + "gate.e_score_correction_bias") : nullptr,
                m.num_experts_per_tok, m.norm_topk_prob, layer} {
    const auto gate_up = store.get(feed_forward_fusion(m, layer));
    PENT_CHECK_EQ(gate_up.size(), size_t{1});  // both are cut alike, so they always fuse
    experts_ = {gate_up[0], store.get(prefix(layer) + "experts.down_proj.weight")};
  }

  at::Tensor forward(const at::Tensor& x, const BlockContext& c) const override {
    const size_t batch = c.batch->index;
    const at::Tensor replay = c.replay != nullptr ? (*c.replay)[router_.layer][batch].to(x.device()) : at::Tensor();
    const auto routing = parallel::route(x, router_, c.batch->valid, replay, c.router_losses, c.stats, c.queue);
    if (c.record != nullptr) (*c.record)[router_.layer][batch] = routing.experts;
    const auto plan = parallel::plan_experts(routing.experts, c.batch->valid, num_experts_, *c.groups);
    return parallel::mix_experts(x, routing.weights, plan, experts_, *c.groups, c.queue);
  }

 private:
  int64_t num_experts_;
  parallel::RouterSpec router_;
  parallel::ExpertWeights experts_;
};

}  // namespace

parallel::Fusion feed_forward_fusion(const spec::ModelSpec& m, int layer) {
  const std::string p = prefix(layer) + (m.moe_layers[layer] ? "experts." : "");
  return {p + "gate_proj.weight", p + "up_proj.weight"};
}

std::unique_ptr<FeedForward> make_feed_forward(const spec::ModelSpec& m, int layer, const parallel::ParamStore& store) {
  if (m.moe_layers[layer]) return std::make_unique<MoeMlp>(m, layer, store);
  return std::make_unique<DenseMlp>(m, layer, store);
}

}  // namespace penteract::model
