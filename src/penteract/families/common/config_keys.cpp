#include "penteract/families/common/config_keys.h"

#include <fmt/format.h>

namespace penteract::families::common {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;

Status must_be(ConfigTable& table, const std::string& key, const std::string& given, const std::string& wanted) {
  if (given == wanted) return {};
  return table.error(key, ErrorCode::model_key, fmt::format("is {}, only {} is supported", given, wanted),
                     "remove the key or set it so");
}

}  // namespace

Status read_decoder_sizes(ConfigTable& t, spec::ModelSpec& m) {
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads"}) PENT_TRY(t.require(key));
  PENT_TRY(t.get("hidden_size", m.hidden_size, 1, kMaxSize));
  PENT_TRY(t.get("num_hidden_layers", m.num_layers, 1, 1 << 16));
  PENT_TRY(t.get("num_attention_heads", m.num_heads, 1, kMaxSize));
  m.num_kv_heads = m.num_heads;
  PENT_TRY(t.get("num_key_value_heads", m.num_kv_heads, 1, kMaxSize));
  if (m.num_heads % m.num_kv_heads != 0) {
    return t.error("num_key_value_heads", ErrorCode::model_key,
                   fmt::format("is {}, which does not divide num_attention_heads = {}", m.num_kv_heads, m.num_heads),
                   "");
  }
  if (t.has("head_dim")) {
    PENT_TRY(t.get("head_dim", m.head_dim, 1, kMaxSize));
  } else {
    t.find("head_dim");
    if (m.hidden_size % m.num_heads != 0) {
      return t.error("num_attention_heads", ErrorCode::model_key,
                     fmt::format("is {}, which does not divide hidden_size = {}", m.num_heads, m.hidden_size),
                     "give head_dim");
    }
    m.head_dim = m.hidden_size / m.num_heads;
  }
  if (m.head_dim % 2 != 0)
    return t.error("head_dim", ErrorCode::model_key,
                   fmt::format("is {}, rotary positions need an even number", m.head_dim), "");
  PENT_TRY(t.get("vocab_size", m.vocab_size, 1, int64_t{1} << 31));
  PENT_TRY(t.get("tie_word_embeddings", m.tie_embeddings));
  PENT_TRY(t.get("rms_norm_eps", m.norm_eps, 1e-30, 1));
  PENT_TRY(t.get("initializer_range", m.initializer_range, 0, 1e3));
  PENT_TRY(t.get("max_position_embeddings", m.max_position_embeddings, 1, int64_t{1} << 31));
  accept_irrelevant(t, {"architectures", "model_type", "torch_dtype", "dtype", "use_cache", "bos_token_id",
                        "eos_token_id", "pad_token_id", "transformers_version", "_name_or_path"});
  return {};
}

Status read_dense_mlp(ConfigTable& t, spec::ModelSpec& m) {
  PENT_TRY(t.require("intermediate_size"));
  PENT_TRY(t.get("intermediate_size", m.intermediate_size, 1, kMaxSize));
  m.moe_layers.assign(m.num_layers, false);
  return {};
}

Status require_plain_attention(ConfigTable& t) {
  PENT_TRY(require_value(t, "hidden_act", std::string("silu")));
  PENT_TRY(require_value(t, "attention_bias", false));
  PENT_TRY(require_value(t, "attention_dropout", 0.0));
  PENT_TRY(require_value(t, "use_sliding_window", false));
  accept_irrelevant(t, {"sliding_window", "max_window_layers"});  // of use_sliding_window
  std::vector<std::string> types;
  PENT_TRY(t.get("layer_types", types));
  for (const auto& type : types) PENT_TRY(must_be(t, "layer_types", type, "full_attention"));
  return {};
}

void accept_irrelevant(ConfigTable& table, const std::vector<std::string>& keys) {
  for (const auto& key : keys) table.find(key);
}

Status require_value(ConfigTable& t, const std::string& key, bool value) {
  bool given = value;
  PENT_TRY(t.get(key, given));
  return must_be(t, key, given ? "true" : "false", value ? "true" : "false");
}

Status require_value(ConfigTable& t, const std::string& key, double value) {
  double given = value;
  PENT_TRY(t.get(key, given, -1e300, 1e300));
  return must_be(t, key, fmt::format("{}", given), fmt::format("{}", value));
}

Status require_value(ConfigTable& t, const std::string& key, const std::string& value) {
  std::string given = value;
  PENT_TRY(t.get(key, given));
  return must_be(t, key, given, value);
}

std::string write_decoder_sizes(const spec::ModelSpec& m) {
  return fmt::format(
      "num_hidden_layers = {}\nhidden_size = {}\nnum_attention_heads = {}\nnum_key_value_heads = {}\nhead_dim = {}\n"
      "vocab_size = {}\ntie_word_embeddings = {}\nrms_norm_eps = {}\ninitializer_range = {}\n"
      "max_position_embeddings = {}\n",
      m.num_layers, m.hidden_size, m.num_heads, m.num_kv_heads, m.head_dim, m.vocab_size, m.tie_embeddings, m.norm_eps,
      m.initializer_range, m.max_position_embeddings);
}

std::string write_dense_mlp(const spec::ModelSpec& m) {
  return fmt::format("intermediate_size = {}\n", m.intermediate_size);
}

}  // namespace penteract::families::common
