// Recipes: TOML to RunSpec and back. The [model] section is left to the families (families/registry.h), so loading
// takes a reader for it. Errors: recipe_*, layout_*, with file, line and the nearest key.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "penteract/base/config_table.h"
#include "penteract/spec/run_spec.h"

namespace penteract::spec {

// Reads the keys of [model] into run.family and run.model. run.model.vocab_size may stay 0: the tokenizer's then.
using ModelReader = std::function<Status(ConfigTable& table, RunSpec& run)>;

// --layout and --ranks of a command line. A layout replaces the recipe's [layout] as a whole, and then run.ranks too.
struct LayoutOverride {
  std::string layout;  // "" = the recipe's
  int ranks = 0;       // 0 = the recipe's, or what the axes multiply to
};

// Reads a document; unknown, misplaced or unused keys are errors. The layout is completed for run.ranks.
Result<RunSpec> read_recipe(ConfigDocument document, const ModelReader& read_model,
                            const LayoutOverride& override = {});
Result<RunSpec> load_recipe(const std::string& path, const std::vector<std::string>& sets,
                            const ModelReader& read_model, const LayoutOverride& override = {});

// The recipe with every default written out; `model_keys` are the lines of [model].
std::string to_toml(const RunSpec& run, const std::string& model_keys);

// "section.key" -> value text, for comparing two resolved recipes. Errors: recipe_syntax.
Result<std::map<std::string, std::string>> flatten_recipe(const std::string& toml_text);

// What a resume changes. Errors: recipe_changed for a key that may not change (interface.md, Resuming).
struct RecipeChange {
  std::string key, before, now;
};
// Models are compared as what they are, not as text: a key that a family has got since is no change. The tokenizer and
// eod are listed like any change: whether they are the same is a matter of their content, which the caller knows.
Result<std::vector<RecipeChange>> compare_recipes(const std::string& before_toml, const std::string& now_toml,
                                                  const ModelReader& read_model);

}  // namespace penteract::spec
