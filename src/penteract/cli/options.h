// What the command line of every command shares, and how a command ends. Thread-safety: main's thread.
#pragma once

#include <string>
#include <vector>

#include "penteract/base/result.h"
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
  std::string device;     // "" or "cpu"
  std::string precision;  // "" = the recipe's
  std::vector<std::string> sets;
};

void add_common(CLI::App& app, CommonOptions& options);
void add_run_options(CLI::App& app, RunOptions& options);

// The --set of the user, and --precision as one. Errors: recipe_unsupported for a device that is not built in.
Result<std::vector<std::string>> sets_of(const RunOptions& options);
spec::LayoutOverride layout_override(const RunOptions& options);

// Prints the error once on stderr (as JSON on stdout too, with --json) and gives its exit code.
int fail(const Error& error, const CommonOptions& options);

}  // namespace penteract::cli
