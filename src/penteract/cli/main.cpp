// Parses the command line, runs one command, and turns whatever it ends with into one message and an exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>

#include "penteract/base/log.h"
#include "penteract/base/result.h"
#include "penteract/cli/commands.h"

int main(int argc, char** argv) {
  using namespace penteract;
  CLI::App app{"penteract: trains large language models on explicit layouts, each proven to compute the same run"};
  app.set_version_flag("--version", "penteract " PENT_VERSION);
  app.require_subcommand(1);
  cli::Run run;
  std::string command_line;
  for (int i = 0; i < argc; ++i) command_line += (i == 0 ? "" : " ") + std::string(argv[i]);
  cli::add_train(app, run, command_line);
  cli::add_eval(app, run);
  cli::add_data(app, run);
  cli::add_inspect(app, run);
  cli::add_verify(app, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    log_error("{}\n  penteract --help lists the commands, penteract COMMAND --help their options", e.what());
    return static_cast<int>(ExitCode::usage);
  }
  try {
    return run();
  } catch (const ErrorException& e) {
    log_error("{}", e.what());
    return static_cast<int>(exit_code(e.error().code));
  } catch (const std::filesystem::filesystem_error& e) {
    log_error("{}: {}", e.path1().string(), e.code().message());
    return static_cast<int>(ExitCode::input);
  } catch (const std::exception& e) {
    log_error("defect of penteract, please report it: {}", e.what());
    return static_cast<int>(ExitCode::defect);
  }
}
