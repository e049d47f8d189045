#include "penteract/families/qwen3_moe/family.h"

#include <fmt/format.h>

#include "penteract/families/common/config_keys.h"
#include "penteract/families/common/rope_keys.h"
#include "penteract/families/common/weight_rules.h"

namespace penteract::families::qwen3_moe {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;

// Defaults are the published values of Qwen3-30B-A3B.
Status read(ConfigTable& t, spec::ModelSpec& m) {
  m.norm_topk_prob = true;
  m.rope_theta = 1e6;
  m.norm_eps = 1e-6;
  m.qk_norm = true;
  PENT_TRY(common::read_decoder_sizes(t, m));
  PENT_TRY(common::read_rope(t, m, false));
  // Transformers writes num_local_experts.
  int64_t local_experts = 0;
  PENT_TRY(t.get("num_local_experts", local_experts, 1, 1 << 20));
  if (local_experts == 0) PENT_TRY(t.require("num_experts"));
  m.num_experts = local_experts;
  PENT_TRY(t.get("num_experts", m.num_experts, 1, 1 << 20));
  if (local_experts != 0 && local_experts != m.num_experts) {
    return t.error("num_local_experts", ErrorCode::model_key,
                   fmt::format("is {}, but num_experts is {}", local_experts, m.num_experts), "remove one of them");
  }
  PENT_TRY(t.require("num_experts_per_tok"));
  PENT_TRY(t.get("num_experts_per_tok", m.num_experts_per_tok, 1, 1 << 20));
  if (m.num_experts_per_tok > m.num_experts) {
    return t.error("num_experts_per_tok", ErrorCode::model_key,
                   fmt::format("is {}, more than num_experts = {}", m.num_experts_per_tok, m.num_experts), "");
  }
  PENT_TRY(t.get("intermediate_size", m.intermediate_size, 1, kMaxSize));
  m.moe_intermediate_size = m.intermediate_size;
  if (!t.has("intermediate_size")) PENT_TRY(t.require("moe_intermediate_size"));
  PENT_TRY(t.get("moe_intermediate_size", m.moe_intermediate_size, 1, kMaxSize));
  PENT_TRY(t.get("norm_topk_prob", m.norm_topk_prob));

  // A layer is a mixture of experts unless it is listed in mlp_only_layers or decoder_sparse_step skips it.
  int step = 1;
  PENT_TRY(t.get("decoder_sparse_step", step, 1, 1 << 16));
  m.moe_layers.assign(m.num_layers, false);
  for (int layer = 0; layer < m.num_layers; ++layer) m.moe_layers[layer] = (layer + 1) % step == 0;
  std::vector<double> dense_layers;
  PENT_TRY(t.get("mlp_only_layers", dense_layers));
  for (double layer : dense_layers) {
    if (layer < 0 || layer >= m.num_layers || layer != static_cast<int>(layer)) {
      return t.error("mlp_only_layers", ErrorCode::recipe_range,
                     fmt::format("names layer {}, the model has {}", layer, m.num_layers), "");
    }
    m.moe_layers[static_cast<int>(layer)] = false;
  }
  bool any_dense = false;
  for (bool moe : m.moe_layers) any_dense |= !moe;
  if (any_dense && m.intermediate_size == 0) PENT_TRY(t.require("intermediate_size"));
  if (!any_dense) m.intermediate_size = 0;

  PENT_TRY(common::require_plain_attention(t));
  common::accept_irrelevant(t, {"output_router_logits", "router_aux_loss_coef"});
  return {};
}

std::string write(const spec::ModelSpec& m) {
  std::string dense;
  for (int layer = 0; layer < m.num_layers; ++layer) {
    if (!m.moe_layers[layer]) dense += fmt::format("{}{}", dense.empty() ? "" : ", ", layer);
  }
  std::string text = common::write_decoder_sizes(m) + common::write_rope(m);
  if (m.intermediate_size > 0) text += fmt::format("intermediate_size = {}\n", m.intermediate_size);
  text += fmt::format(
      "moe_intermediate_size = {}\nnum_experts = {}\nnum_experts_per_tok = {}\nnorm_topk_prob = {}\nmlp_only_layers = "
      "[{}]\n",
      m.moe_intermediate_size, m.num_experts, m.num_experts_per_tok, m.norm_topk_prob, dense);
  return text;
}

}  // namespace

Family family() { return {"qwen3_moe", read, write, common::decoder_tensors}; }

}  // namespace penteract::families::qwen3_moe
