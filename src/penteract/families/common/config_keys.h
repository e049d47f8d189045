// What the configs of several families share: sizes, keys that must have one value, keys that change nothing.
#pragma once

#include <string>
#include <vector>

#include "penteract/base/config_table.h"
#include "penteract/spec/model_spec.h"

namespace penteract::families::common {

// hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads (default: heads), head_dim (default:
// hidden ÷ heads), vocab_size, tie_word_embeddings, rms_norm_eps, initializer_range, max_position_embeddings; and the
// keys of a pasted config that change nothing here. Errors: recipe_missing, recipe_range, model_key where numbers do not divide.
Status read_decoder_sizes(ConfigTable& table, spec::ModelSpec& model);

// intermediate_size of a model whose layers are all dense.
Status read_dense_mlp(ConfigTable& table, spec::ModelSpec& model);

// Keys that change nothing here.
void accept_irrelevant(ConfigTable& table, const std::vector<std::string>& keys);

// SiLU, and attention without biases, dropout and sliding windows: model_key for anything else.
Status require_plain_attention(ConfigTable& table);

// The key, where given, must have this value: anything else is a feature that is not built (model_key).
Status require_value(ConfigTable& table, const std::string& key, bool value);
Status require_value(ConfigTable& table, const std::string& key, double value);
Status require_value(ConfigTable& table, const std::string& key, const std::string& value);

// The lines of read_decoder_sizes and read_dense_mlp.
std::string write_decoder_sizes(const spec::ModelSpec& model);
std::string write_dense_mlp(const spec::ModelSpec& model);

}  // namespace penteract::families::common
