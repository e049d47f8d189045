// A small recipe that loads, for tests that spoil it.
#pragma once

#include <string>

namespace penteract::spec {

inline const char* kRecipe = R"([run]
dir = "runs/x"
ranks = 4

[model]
family = "qwen3_moe"
num_hidden_layers = 4
hidden_size = 32
moe_intermediate_size = 16
num_attention_heads = 4
num_key_value_heads = 2
num_experts = 8
num_experts_per_tok = 2
vocab_size = 300

[layout]
tp = 2
ep = 2

[data]
tokenizer = "tokenizer.json"
train = ["a.txt"]
seq_length = 16

[batch]
global = 4

[optimizer]
lr = 1e-3

[train]
steps = 3
)";

// The recipe with `from` replaced by `to`.
inline std::string recipe_with(const std::string& from, const std::string& to) {
  std::string text = kRecipe;
  const size_t at = text.find(from);
  return at == std::string::npos ? std::string() : text.replace(at, from.size(), to);
}

}  // namespace penteract::spec
