#include "penteract/families/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "penteract/base/text.h"
#include "penteract/families/qwen3_moe/family.h"

namespace penteract::families {

const std::vector<Family>& all_families() {
  static const std::vector<Family> families = {qwen3_moe::family()};
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
