// penteract verify CKPT
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "penteract/checkpoint/step_directory.h"
#include "penteract/checkpoint/verify.h"
#include "penteract/cli/commands.h"
#include "penteract/cli/model_path.h"
#include "penteract/cli/options.h"

namespace penteract::cli {
namespace {

// The steps that a path names: all of a folder of steps or a run directory, else the path itself.
Result<std::vector<std::string>> steps_of(const std::string& path) {
  if (!std::filesystem::exists(path))
    return Error{ErrorCode::checkpoint_missing, "does not exist", path, "name a checkpoint or a run directory"};
  const std::string folder = checkpoints_folder(path);
  if (folder.empty()) return std::vector<std::string>{path};
  PENT_ASSIGN(const auto steps, checkpoint::list_steps(folder));
  if (steps.empty())
    return Error{ErrorCode::checkpoint_missing, "holds no checkpoint", folder, "train first, or name another folder"};
  std::vector<std::string> paths;
  for (int64_t step : steps) paths.push_back(checkpoint::join_path(folder, checkpoint::step_name(step)));
  return paths;
}

int run_verify(const std::string& path, const CommonOptions& common) {
  const auto steps = steps_of(path);
  if (!steps.ok()) return fail(steps.error(), common);
  bool ok = true;
  std::string json;
  for (const auto& step : *steps) {
    const auto report = checkpoint::verify(step);
    if (!report.ok()) return fail(report.error(), common);
    ok &= report->ok();
    json += (json.empty() ? "" : ",\n") + report->json();
    if (!common.json) print_text(report->text() + "\n");
  }
  if (common.json) fmt::print("[{}]\n", json);
  return static_cast<int>(ok ? ExitCode::done : ExitCode::proof);
}

}  // namespace

void add_verify(CLI::App& app, Run& run) {
  auto path = std::make_shared<std::string>();
  auto common = std::make_shared<CommonOptions>();
  CLI::App* command = app.add_subcommand("verify", "re-reads every byte of a checkpoint against its checksums");
  command->add_option("CKPT", *path, "checkpoint, folder of checkpoints or run directory")->required();
  add_common(*command, *common);
  command->callback([path, common, &run] { run = [path, common] { return run_verify(*path, *common); }; });
}

}  // namespace penteract::cli
