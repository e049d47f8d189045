#include "penteract/families/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "penteract/base/text.h"
#include "penteract/families/common/rope_keys.h"
#include "penteract/families/llama/family.h"
#include "penteract/families/qwen3/family.h"
#include "penteract/families/qwen3_moe/family.h"

namespace penteract::families {

const std::vector<Family>& all_families() {
  static const std::vector<Family> families = {llama::family(), qwen3::family(), qwen3_moe::family()};
  return families;
}

Result<const Family*> find_family(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& family : all_families()) {
    if (family.name == name) return &family;
    names.push_back(family.name);
  }
  const auto near = nearest_word(name, names);
  return Error{ErrorCode::family_unknown,
               fmt::format("the family \"{}\" is not known; known: {}", name, fmt::join(names, ", ")), "model.family",
               near.empty() ? "" : fmt::format("did you mean \"{}\"?", near)};
}

std::string write_model(const spec::ModelSpec& model) {
  const Family* family = or_throw(find_family(model.family));
  return fmt::format("family = \"{}\"\n", family->name) + family->write(model);
}

Result<spec::ModelSpec> read_hf_config(ConfigTable table) {
  spec::ModelSpec model;
  PENT_TRY(table.require("model_type"));
  PENT_TRY(table.get("model_type", model.family));
  PENT_ASSIGN(const Family* family, find_family(model.family));
  // In a recipe these have defaults; a config that lacks one is not one of this family.
  for (const char* key : {"vocab_size", "rms_norm_eps"}) PENT_TRY(table.require(key));
  if (!common::has_rope_theta(table)) PENT_TRY(table.require("rope_theta"));
  PENT_TRY(family->read(table, model));
  if (const auto unread = table.unread(); !unread.empty()) {
    const std::vector<std::string> known(table.asked().begin(), table.asked().end());
    const auto near = nearest_word(unread[0], known);
    return table.error(unread[0], ErrorCode::model_key,
                       fmt::format("is not known to the family \"{}\": it could change the model", family->name),
                       near.empty() ? "remove it if it does not" : fmt::format("did you mean \"{}\"?", near));
  }
  return model;
}

Status read_model(ConfigTable& table, spec::RunSpec& run) {
  if (table.has("from")) {
    return table.error("from", ErrorCode::recipe_unsupported,
                       "starting from another model is not supported in this version",
                       "describe the model by family and sizes");
  }
  PENT_TRY(table.require("family"));
  PENT_TRY(table.get("family", run.family));
  PENT_ASSIGN(const Family* family, find_family(run.family));
  run.model.family = run.family;
  return family->read(table, run.model);
}

}  // namespace penteract::families
