// What the configs of several families share: sizes, keys that must have one value, keys that change nothing.
#pragma once

#include <string>
#include <vector>

#include "penteract/base/config_table.h"
#include "penteract/spec/model_spec.h"

namespace penteract::families::common {

// hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads (default: heads), head_dim (default:
// hidden ÷ heads), vocab_size, tie_word_embeddings, rms_norm_eps, rope_theta, initializer_range,
// max_position_embeddings. Errors: recipe_missing, recipe_range, model_key where numbers do not divide.
Status read_decoder_sizes(ConfigTable& table, spec::ModelSpec& model);

// Keys of a pasted config that change nothing here: names, dtypes, token ids, caches, balancing coefficients.
void accept_irrelevant(ConfigTable& table, const std::vector<std::string>& keys);
const std::vector<std::string>& irrelevant_keys();

// The key, where given, must have this value: anything else is a feature that is not built (model_key).
Status require_value(ConfigTable& table, const std::string& key, bool value);
Status require_value(ConfigTable& table, const std::string& key, double value);
Status require_value(ConfigTable& table, const std::string& key, const std::string& value);

// The lines of read_decoder_sizes.
std::string write_decoder_sizes(const spec::ModelSpec& model);

}  // namespace penteract::families::common
