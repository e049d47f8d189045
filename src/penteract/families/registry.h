// The model families by name. A family reads the keys of its Hugging Face config into a ModelSpec.
// Adding one: a folder with family.h/.cpp and one line in registry.cpp (CONTRIBUTING.md).
#pragma once

#include <string>
#include <vector>

#include "penteract/base/config_table.h"
#include "penteract/families/weight_rules.h"
#include "penteract/spec/run_spec.h"

namespace penteract::families {

struct Family {
  std::string name;
  // Reads the family's keys; every other key stays unread and is an error of the recipe. vocab_size may stay 0.
  // Errors: recipe_*, model_key (contradictory numbers, features that the family cannot have here).
  Status (*read)(ConfigTable& table, spec::ModelSpec& model);
  // The lines of [model], without `family`, that read() turns into the same ModelSpec.
  std::string (*write)(const spec::ModelSpec& model);
  // Every tensor of a Hugging Face checkpoint of the model; together they fill each parameter exactly once.
  std::vector<HfTensor> (*hf_tensors)(const spec::ModelSpec& model);
};

const std::vector<Family>& all_families();

// family_unknown, naming those that exist and the nearest.
Result<const Family*> find_family(const std::string& name);

// The lines of [model] of the model's family.
std::string write_model(const spec::ModelSpec& model);

// Reads a Hugging Face config: model_type names the family. A key that no family knows, is needed and absent, or has a
// value that is not supported is an error. Errors: family_unknown, model_key, recipe_*.
Result<spec::ModelSpec> read_hf_config(ConfigTable table);

// Reads [model] of a recipe: `family` and its keys. `from` is recipe_unsupported.
Status read_model(ConfigTable& table, spec::RunSpec& run);

}  // namespace penteract::families
