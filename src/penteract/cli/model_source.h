// MODEL of a command that runs one: its weights and the recipe to run it by. Thread-safety: main's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penteract/checkpoint/weight_source.h"
#include "penteract/cli/options.h"
#include "penteract/spec/run_spec.h"

namespace penteract::cli {

struct ModelSource {
  std::string path;    // of the Hugging Face directory or the step
  std::string recipe;  // TOML: of the run that wrote the step, or the defaults around the model of a directory
  std::unique_ptr<checkpoint::Reader> reader;  // of a step
  std::unique_ptr<checkpoint::WeightSource> weights;
};

// A checkpoint, a run directory (its newest checkpoint) or a Hugging Face directory. Notes go to the log.
// Errors: those of resolve_step, checkpoint::Reader and convert::HfDirectory.
Result<ModelSource> open_model(const std::string& model);

// The run of a model under --layout, --ranks, --precision and --set; one rank where neither layout nor ranks are given,
// --ranks alone means data parallel. Keys of [batch] and [layout] follow from the command and may not be set.
// Errors: recipe_*, layout_*.
Result<spec::RunSpec> run_of(const ModelSource& source, const RunOptions& options);

}  // namespace penteract::cli
