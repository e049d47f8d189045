// penteract inspect PATH
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "penteract/base/file.h"
#include "penteract/base/json.h"
#include "penteract/base/text.h"
#include "penteract/checkpoint/inspect.h"
#include "penteract/cli/commands.h"
#include "penteract/cli/model_path.h"
#include "penteract/cli/options.h"
#include "penteract/data/documents.h"
#include "penteract/data/indexed_dataset.h"

namespace penteract::cli {
namespace {
namespace fs = std::filesystem;

Result<checkpoint::Description> describe_dataset(const std::string& path) {
  PENT_ASSIGN(const auto dataset, data::IndexedDataset::open(path));
  const Json json = {{"kind", "dataset"},
                     {"path", dataset->prefix()},
                     {"documents", dataset->num_documents()},
                     {"sequences", dataset->num_sequences()},
                     {"tokens", dataset->num_tokens()},
                     {"bytes_per_token", data::token_bytes(dataset->dtype())}};
  return checkpoint::Description{
      dump_json(json), format_table({{"dataset", dataset->prefix()},
                                     {"documents", std::to_string(dataset->num_documents())},
                                     {"tokens", std::to_string(dataset->num_tokens())},
                                     {"bytes a token", std::to_string(data::token_bytes(dataset->dtype()))}})};
}

// Resolved recipe, last line of the metrics, evidence; then the checkpoints.
Result<checkpoint::Description> describe_run(const std::string& path) {
  Json json = {{"kind", "run"}, {"path", path}};
  std::string text = fmt::format("run {}\n", path);
  if (const auto metrics = read_file(path + "/metrics.jsonl"); metrics.ok()) {
    const auto lines = split_text(trim(*metrics), '\n');
    if (const auto last = parse_json(lines.back(), path + "/metrics.jsonl"); last.ok() && last->is_object()) {
      json["last_step"] = *last;
      std::vector<std::vector<std::string>> rows = {{"metric", "last step"}};
      for (const auto& [key, value] : last->items()) rows.push_back({key, value.dump()});
      text += "\n" + format_table(rows);
    }
  }
  if (const auto evidence = read_json(path + "/evidence.json"); evidence.ok() && evidence->is_object()) {
    json["evidence"] = *evidence;
    std::vector<std::vector<std::string>> rows = {{"fact", "ok"}};
    for (const auto& [fact, state] : evidence->items())
      rows.push_back({fact, state.is_object() && state.contains("ok") && state["ok"] == true ? "yes" : "NO"});
    text += "\n" + format_table(rows);
  }
  if (checkpoint::is_describable(path + "/checkpoints")) {
    PENT_ASSIGN(const auto steps, checkpoint::describe(path + "/checkpoints"));
    PENT_ASSIGN(json["checkpoints"], parse_json(steps.json, path));
    text += "\n" + steps.text;
  }
  return checkpoint::Description{dump_json(json), text};
}

Result<checkpoint::Description> describe(const std::string& path) {
  if (fs::exists(path + ".idx") || path.ends_with(".idx") || path.ends_with(".bin")) return describe_dataset(path);
  if (!fs::exists(path))
    return Error{ErrorCode::file_missing, "does not exist", path,
                 "name a checkpoint, run directory, dataset or safetensors file"};
  if (fs::exists(path + "/config.json")) {
    return Error{ErrorCode::recipe_unsupported, "Hugging Face directories are not supported in this version", path,
                 "name a safetensors file in it"};
  }
  if (fs::exists(path + "/recipe.toml")) return describe_run(path);
  return checkpoint::describe(path);
}

}  // namespace

void add_inspect(CLI::App& app, Run& run) {
  auto path = std::make_shared<std::string>();
  auto common = std::make_shared<CommonOptions>();
  CLI::App* command =
      app.add_subcommand("inspect", "shows what a checkpoint, run directory, dataset or safetensors file holds");
  command->add_option("PATH", *path, "file or folder")->required();
  add_common(*command, *common);
  command->callback([path, common, &run] {
    run = [path, common] {
      const auto description = describe(*path);
      if (!description.ok()) return fail(description.error(), *common);
      if (common->json) fmt::print("{}\n", description->json);
      else print_text(description->text + "\n");
      return static_cast<int>(ExitCode::done);
    };
  });
}

}  // namespace penteract::cli
