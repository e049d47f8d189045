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
  PENT_TRY(t.get("rms_norm_eps", m.norm_eps, 0, 1));
  PENT_TRY(t.get("rope_theta", m.rope_theta, 1, 1e15));
  PENT_TRY(t.get("initializer_range", m.initializer_range, 0, 1e3));
  return t.get("max_position_embeddings", m.max_position_embeddings, 1, int64_t{1} << 31);
}

const std::vector<std::string>& irrelevant_keys() {
  static const std::vector<std::string> keys = {
      "architectures",        "model_type",           "torch_dtype",         "dtype",          "use_cache",
      "bos_token_id",         "eos_token_id",         "pad_token_id",        "sliding_window", "max_window_layers",
      "transformers_version", "output_router_logits", "router_aux_loss_coef"};
  return keys;
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
      "vocab_size = {}\ntie_word_embeddings = {}\nrms_norm_eps = {}\nrope_theta = {}\ninitializer_range = {}\n"
      "max_position_embeddings = {}\n",
      m.num_layers, m.hidden_size, m.num_heads, m.num_kv_heads, m.head_dim, m.vocab_size, m.tie_embeddings, m.norm_eps,
      m.rope_theta, m.initializer_range, m.max_position_embeddings);
}

}  // namespace penteract::families::common
