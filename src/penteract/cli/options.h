// What the command line of every command shares, and how a command ends. Thread-safety: main's thread.
#pragma once

#include <string>
#include <vector>

#include "penteract/base/result.h"
#include "penteract/comm/world.h"
#include "penteract/spec/recipe.h"

namespace CLI {
class App;
}

namespace penteract::cli {

struct CommonOptions {
  bool json = false;
  bool verbose = false;
};

// Those of commands that run a model.
struct RunOptions {
  std::string layout;     // as --layout gives it; "" = the recipe's
  int ranks = 0;          // 0 = the recipe's
  std::string device;     // cpu, cuda, or "" = cuda where there is one
  std::string precision;  // "" = the recipe's
  std::vector<std::string> sets;
};

void add_common(CLI::App& app, CommonOptions& options);
void add_run_options(CLI::App& app, RunOptions& options);

// The --set of the user, and --precision as one.
Result<std::vector<std::string>> sets_of(const RunOptions& options);
spec::LayoutOverride layout_override(const RunOptions& options);

// How the ranks of a run live: deadline, threads, and the device of --device: without it CUDA where there is a device
// and the recipe is not fp64. Errors: device_unavailable; recipe_unsupported for fp64 on a device.
Result<comm::WorldOptions> world_options(const spec::RunSpec& run, const RunOptions& options);

// Text of files for people, on stdout: nothing in it steers the terminal.
void print_text(const std::string& text);

// An argument that is an empty text would be ignored or taken for a default. Errors: invalid_argument, naming it.
Status check_no_empty_argument(const CLI::App& app);

// Prints the error once on stderr (as JSON on stdout too, with --json) and gives its exit code. A stop by a signal is no
// error and has no "error:" in front.
int fail(const Error& error, const CommonOptions& options);

}  // namespace penteract::cli
