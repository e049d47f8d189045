// The rotary keys of Hugging Face configs, in both spellings: rope_theta with rope_scaling, and rope_parameters.
#pragma once

#include <string>

#include "penteract/base/config_table.h"
#include "penteract/spec/model_spec.h"

namespace penteract::families::common {

// rope_theta and, where `llama3` is true, the scaling of rope_type "llama3" into the model; keys that are absent leave it
// as it is. Errors: model_key for two spellings that disagree, another rope_type, a key that its type does not use;
// recipe_missing, recipe_range.
Status read_rope(ConfigTable& table, spec::ModelSpec& model, bool llama3);

// True where the base of the frequencies is given in one of the spellings.
bool has_rope_theta(const ConfigTable& table);

// The lines of read_rope.
std::string write_rope(const spec::ModelSpec& model);

}  // namespace penteract::families::common
