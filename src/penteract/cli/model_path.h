// MODEL of a command line: a run directory, a folder of checkpoints or one step. Thread-safety: pure functions.
#pragma once

#include <string>

#include "penteract/base/result.h"

namespace penteract::cli {

// The step directory that MODEL names: itself, or the newest complete one. What was passed over is a warning.
// Errors: checkpoint_missing, checkpoint_damaged; recipe_unsupported for a Hugging Face directory.
Result<std::string> resolve_step(const std::string& model);

// "checkpoints" below a run directory, the folder itself where it holds steps, "" otherwise.
std::string checkpoints_folder(const std::string& path);

}  // namespace penteract::cli
