// Parses the command line, runs one command, and turns whatever it ends with into one message and an exit code.
#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string_view>

#include "penteract/base/log.h"
#include "penteract/base/result.h"
#include "penteract/cli/commands.h"
#include "penteract/cli/options.h"

namespace {

// A closed descriptor would be given to the next file opened, and lines for people would end up in it.
void open_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1) [[maybe_unused]]
      const int opened = ::open("/dev/null", O_RDWR);
  }
}

// What could not be written to stdout (a full disk behind a pipe) is no success.
int flush_stdout(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  if (code != 0) return code;
  penteract::log_error("stdout: cannot write all of the output");
  return static_cast<int>(penteract::ExitCode::storage);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace penteract;
  open_standard_descriptors();
  CLI::App app{"penteract: trains large language models on explicit layouts, each proven to compute the same run"};
  app.set_version_flag("--version", "penteract " PENT_VERSION);
  app.require_subcommand(1);
  cli::Run run;
  cli::CommonOptions common;
  std::string command_line;
  for (int i = 0; i < argc; ++i) {
    command_line += (i == 0 ? "" : " ") + std::string(argv[i]);
    common.json |= std::string_view(argv[i]) == "--json";
  }
  cli::add_train(app, run, command_line);
  cli::add_eval(app, run);
  cli::add_probe(app, run);
  cli::add_data(app, run);
  cli::add_inspect(app, run);
  cli::add_verify(app, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return flush_stdout(app.exit(e));
  } catch (const CLI::ParseError& e) {
    return cli::fail({ErrorCode::invalid_argument, e.what(), "command line",
                      "penteract --help lists the commands, penteract COMMAND --help their options"},
                     common);
  }
  if (const Status status = cli::check_no_empty_argument(app); !status.ok()) return cli::fail(status.error(), common);
  try {
    return flush_stdout(run());
  } catch (const ErrorException& e) {
    return cli::fail(e.error(), common);
  } catch (const std::filesystem::filesystem_error& e) {
    return cli::fail({ErrorCode::file_unreadable, e.code().message(), e.path1().string(),
                      "check that it exists and that its permissions let you read it"},
                     common);
  } catch (const std::exception& e) {
    return cli::fail({ErrorCode::defect, e.what(), "", "this is a defect of penteract: please report it"}, common);
  }
}
