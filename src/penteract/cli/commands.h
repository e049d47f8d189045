// The commands, one file each. Each adds itself to the app; the function that it leaves in `run` does the work and
// returns the exit code. Thread-safety: main's thread.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace penteract::cli {

using Run = std::function<int()>;

// command_line: as it was typed, for the run record.
void add_train(CLI::App& app, Run& run, const std::string& command_line);
void add_eval(CLI::App& app, Run& run);
void add_probe(CLI::App& app, Run& run);
void add_data(CLI::App& app, Run& run);
void add_inspect(CLI::App& app, Run& run);
void add_verify(CLI::App& app, Run& run);

}  // namespace penteract::cli
