#include "penteract/cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "penteract/base/json.h"
#include "penteract/base/log.h"
#include "penteract/base/text.h"
#include "penteract/base/toml.h"
#include "penteract/cuda/open.h"

namespace penteract::cli {

void add_common(CLI::App& app, CommonOptions& o) {
  app.add_flag("--json", o.json, "one JSON document on stdout, everything else on stderr");
  app.add_flag("-v,--verbose", o.verbose, "more lines about what is done");
}

void add_run_options(CLI::App& app, RunOptions& o) {
  app.add_option("--layout", o.layout, "axes, for example tp=2,pp=2,dp=2,ep=4")->type_name("L");
  app.add_option("--ranks", o.ranks, "number of ranks (threads of this process)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  app.add_option("--device", o.device, "cpu or cuda; without it cuda where there is one")
      ->type_name("D")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--precision", o.precision, "fp64, fp32 or bf16")->type_name("R");
  // One value an option: a value may itself hold commas and brackets.
  app.add_option("--set", o.sets, "any recipe key: section.key=value (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

Result<std::vector<std::string>> sets_of(const RunOptions& o) {
  std::vector<std::string> sets = o.sets;
  if (!o.precision.empty()) sets.push_back("precision.recipe=" + toml_quote(o.precision));
  return sets;
}

Result<comm::WorldOptions> world_options(const spec::RunSpec& run, const RunOptions& o) {
  comm::WorldOptions world;
  world.deadline = std::chrono::milliseconds(static_cast<int64_t>(run.comm_deadline_s * 1e3));
  world.intra_op_threads = run.threads;
  const bool fp64 = run.precision == spec::Recipe::fp64;
  if (o.device == "cuda" && fp64) {
    return Error{ErrorCode::recipe_unsupported, "the fp64 recipe is the reference and runs on the CPU", "--device cuda",
                 "use --device cpu, or another precision"};
  }
  if (o.device == "cuda" || (o.device.empty() && !fp64 && cuda::num_devices() > 0)) {
    PENT_ASSIGN(world.device, cuda::open_devices(run.layout.num_ranks()));
  }
  return world;
}

spec::LayoutOverride layout_override(const RunOptions& o) { return {o.layout, o.ranks}; }

void print_text(const std::string& text) { fmt::print("{}", printable(text)); }

Status check_no_empty_argument(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) PENT_TRY(check_no_empty_argument(*command));
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& value : option->results()) {
      if (!value.empty()) continue;
      return Error{ErrorCode::invalid_argument, "is empty", option->get_name(), "give it a value, or leave it out"};
    }
  }
  return {};
}

int fail(const Error& error, const CommonOptions& o) {
  const int code = static_cast<int>(exit_code(error.code));
  if (exit_code(error.code) == ExitCode::stopped) log_info("{}", error.message());
  else log_error("{}", error.message());
  if (o.json) {
    const Json document = {{"error",
                            {{"name", error_name(error.code)},
                             {"number", static_cast<int>(error.code)},
                             {"what", error.what},
                             {"culprit", error.culprit},
                             {"remedy", error.remedy}}},
                           {"exit_code", code}};
    fmt::print("{}\n", dump_json(document));
  }
  return code;
}

}  // namespace penteract::cli
