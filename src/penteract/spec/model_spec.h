// What a decoder is, without any layout: the sizes that param_table and the model read.
// Thread-safety: value type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penteract::spec {

// One generic decoder: pre-norm blocks of grouped-query attention and a dense or mixture-of-experts MLP (SwiGLU).
struct ModelSpec {
  std::string family;
  int num_layers = 0;
  int64_t hidden_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab_size = 0;         // never padded: padding is a matter of a layout
  int64_t intermediate_size = 0;  // of a dense MLP; 0 where no layer has one
  int64_t num_experts = 0;
  int64_t num_experts_per_tok = 0;
  int64_t moe_intermediate_size = 0;
  bool norm_topk_prob = true;    // combine weights are divided by their sum over the chosen experts
  std::vector<bool> moe_layers;  // [num_layers] true: mixture of experts
  bool qk_norm = false;          // RMSNorm of each query and key head before RoPE
  bool tie_embeddings = false;
  double norm_eps = 1e-6;
  double rope_theta = 1e6;
  double initializer_range = 0.02;
  int64_t max_position_embeddings = 40960;

  bool has_experts() const { return num_experts > 0; }
  bool operator==(const ModelSpec&) const = default;
};

}  // namespace penteract::spec
