#include "penteract/cli/model_path.h"

#include <fmt/format.h>

#include <filesystem>

#include "penteract/base/log.h"
#include "penteract/checkpoint/find.h"
#include "penteract/checkpoint/step_directory.h"

namespace penteract::cli {
namespace fs = std::filesystem;

std::string checkpoints_folder(const std::string& path) {
  if (fs::is_directory(path + "/checkpoints")) return path + "/checkpoints";
  const auto steps = checkpoint::list_steps(path);
  return steps.ok() && !steps->empty() ? path : "";
}

Result<std::string> resolve_step(const std::string& model) {
  if (!fs::exists(model)) {
    return Error{ErrorCode::checkpoint_missing, "does not exist", model, "name a run directory or a checkpoint"};
  }
  if (fs::exists(model + "/config.json")) {
    return Error{ErrorCode::recipe_unsupported,
                 "this command does not read Hugging Face directories in this version; probe does", model,
                 "name a run directory or a checkpoint"};
  }
  const std::string folder = checkpoints_folder(model);
  if (folder.empty()) return model;  // a step, or the reader says what is wrong with it
  std::vector<std::string> notes;
  PENT_ASSIGN(const auto found, checkpoint::find_newest(folder, &notes));
  for (const auto& note : notes) log_warning("{}", note);
  if (!found) return Error{ErrorCode::checkpoint_missing, "holds no checkpoint", folder, "train first"};
  return *found;
}

}  // namespace penteract::cli
