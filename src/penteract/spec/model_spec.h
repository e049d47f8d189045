// What a decoder is, without any layout: the sizes that param_table and the model read.
// Thread-safety: value type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penteract::spec {

// The frequencies of Llama 3.1's rope_type "llama3": long wavelengths are stretched by `factor`, those between
// original_max_position_embeddings ÷ high_freq_factor and ÷ low_freq_factor partly. factor 1: plain RoPE.
struct Llama3Rope {
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_max_position_embeddings = 8192;
  bool operator==(const Llama3Rope&) const = default;
};

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
  bool router_bias = false;      // a bias that the choice of experts adds to the scores (balance = "bias" moves it)
  bool norm_topk_prob = true;    // combine weights are divided by their sum over the chosen experts
  std::vector<bool> moe_layers;  // [num_layers] true: mixture of experts
  bool qk_norm = false;          // RMSNorm of each query and key head before RoPE
  bool tie_embeddings = false;
  double norm_eps = 1e-6;
  double rope_theta = 1e6;
  Llama3Rope llama3_rope;
  double initializer_range = 0.02;
  int64_t max_position_embeddings = 40960;

  bool has_experts() const { return num_experts > 0; }
  bool operator==(const ModelSpec&) const = default;
};

}  // namespace penteract::spec
