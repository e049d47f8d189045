#include "penteract/cli/model_source.h"

#include <fmt/format.h>

#include "penteract/base/log.h"
#include "penteract/base/toml.h"
#include "penteract/cli/model_path.h"
#include "penteract/convert/hf_directory.h"
#include "penteract/families/registry.h"
#include "penteract/spec/recipe.h"

namespace penteract::cli {
namespace {

// What a recipe must say and a directory does not: nothing of it is used.
std::string recipe_around(const spec::ModelSpec& model) {
  return fmt::format(
      "[run]\ndir = \"unused\"\n[model]\n{}[data]\ntokenizer = \"unused\"\ntrain = [\"unused\"]\nseq_length = 1\n"
      "[batch]\nglobal = 1\n[optimizer]\nlr = 0.0\n[train]\nsteps = 1\n",
      families::write_model(model));
}

}  // namespace

Result<ModelSource> open_model(const std::string& model) {
  ModelSource source;
  if (convert::is_hf_directory(model)) {
    std::vector<std::string> notes;
    PENT_ASSIGN(auto directory, convert::HfDirectory::open(model, &notes));
    for (const auto& note : notes) log_warning("{}", note);
    source.path = model;
    source.recipe = recipe_around(directory->model());
    source.weights = std::move(directory);
    return source;
  }
  PENT_ASSIGN(source.path, resolve_step(model));
  PENT_ASSIGN(source.reader, checkpoint::Reader::open(source.path));
  source.recipe = source.reader->state().recipe_toml;
  source.weights = std::make_unique<checkpoint::StepWeights>(*source.reader);
  return source;
}

Result<spec::RunSpec> run_of(const ModelSource& source, const RunOptions& options) {
  PENT_ASSIGN(auto sets, sets_of(options));
  for (const auto& set : sets) {
    for (const char* section : {"batch.", "layout.", "model."}) {
      if (!set.starts_with(section)) continue;
      return Error{ErrorCode::invalid_argument, "cannot be set for a model that exists", fmt::format("--set {}", set),
                   "the layout is --layout; batch and model are given"};
    }
  }
  spec::LayoutOverride layout = layout_override(options);
  if (layout.layout.empty()) layout.layout = layout.ranks == 0 ? "tp=1" : fmt::format("dp={}", layout.ranks);
  PENT_ASSIGN(const auto request, topology::parse_layout(layout.layout));
  PENT_ASSIGN(const auto completed, topology::complete_layout(request, layout.ranks));
  sets.push_back("batch.micro=1");
  sets.push_back(fmt::format("batch.global={}", completed.dp));
  PENT_ASSIGN(auto document, parse_toml(source.recipe, source.path, sets));
  return spec::read_recipe(std::move(document), families::read_model, layout);
}

}  // namespace penteract::cli
