// penteract train RECIPE.toml
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <memory>
#include <thread>

#include "penteract/base/file.h"
#include "penteract/base/json.h"
#include "penteract/base/log.h"
#include "penteract/base/text.h"
#include "penteract/cli/commands.h"
#include "penteract/cli/options.h"
#include "penteract/cli/stop_signal.h"
#include "penteract/families/registry.h"
#include "penteract/spec/legality.h"
#include "penteract/spec/recipe.h"
#include "penteract/train/loop.h"

namespace penteract::cli {
namespace {

struct Trained {
  train::RunOutcome outcome;
  bool already_finished = false;  // nothing was done
};

// The evidence of a run that is finished, as it was written at its end.
train::Evidence recorded_evidence(const train::RunDirectory& directory) {
  const std::string path = directory.file("evidence.json");
  auto text = read_file(path, 1 << 20);
  if (text.ok()) {
    auto evidence = train::Evidence::parse(*text, path);
    if (evidence.ok()) return std::move(evidence).value();
    log_warning("{}", evidence.error().message());
  } else {
    log_warning("{}", text.error().message());
  }
  return {};
}

// `log` is opened as soon as there is a run directory: lines before the ranks start belong to rank 0's.
Result<Trained> run_training(const std::string& recipe, const RunOptions& options, const std::string& command_line,
                             const std::atomic<bool>& stop, std::unique_ptr<LogFile>& log) {
  PENT_ASSIGN(const auto sets, sets_of(options));
  PENT_ASSIGN(spec::RunSpec run, spec::load_recipe(recipe, sets, families::read_model, layout_override(options)));
  PENT_ASSIGN(const auto tokenizer, train::load_tokenizer(run));
  PENT_TRY(spec::check_layout(run.model, run.layout, run.global_batch));
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  // Stands in the resolved recipe: the number of threads changes bits, so a resume that changes it must say so.
  if (run.threads == 0) run.threads = std::max(1, cores / run.ranks);
  PENT_ASSIGN(comm::WorldOptions world, world_options(run, options));
  const std::string resolved = spec::to_toml(run, families::write_model(run.model));
  PENT_ASSIGN(const auto identity, train::identify_tokenizer(run, *tokenizer));
  PENT_ASSIGN(const auto directory, train::RunDirectory::open(run.dir));
  PENT_ASSIGN(log, LogFile::open(directory.log_of_rank(0)));
  PENT_ASSIGN(const auto resume, train::find_resume_point(directory.checkpoints(), run, resolved, identity));
  Trained trained;
  train::RunOutcome& outcome = trained.outcome;
  if (resume) {
    outcome.resumed_from = outcome.last_step = resume->counters.step;
    trained.already_finished = resume->counters.step >= run.steps;
    if (trained.already_finished) {
      outcome.evidence = recorded_evidence(directory);
      return trained;
    }
  }
  auto opened = train::Corpus::open(run, tokenizer, directory.file("cache"), &stop);
  if (!opened.ok() && opened.error().code == ErrorCode::interrupted) {
    log_info("stopped while the data were read: there is nothing to save");
    outcome.stopped = true;
    return trained;
  }
  PENT_ASSIGN(const auto corpus, std::move(opened));
  PENT_ASSIGN(const auto windows, resume ? corpus.training_windows(resume->plan, resume->reader->state().samples)
                                         : corpus.training_windows(std::nullopt, 0));
  if (windows.num_left_over() > 0) log_info("{} tokens an epoch fill no window", windows.num_left_over());
  if (stop.load()) {
    log_info("stopped before the first step: there is nothing to save");
    outcome.stopped = true;
    return trained;
  }
  // From here on the run has begun: only now is what an earlier one left replaced.
  PENT_TRY(directory.write("recipe.toml", resolved));
  PENT_TRY(directory.write("environment.json", train::environment_json(command_line, run.layout, run.threads)));
  log_info("{} rank{}, {} thread{} each: {}", run.ranks, run.ranks == 1 ? "" : "s", run.threads,
           run.threads == 1 ? "" : "s", topology::to_string(run.layout));

  std::string flight_records;
  world.on_flight_records = [&](const std::string& records) { flight_records = records; };
  const train::RunInputs inputs{run, corpus, directory, resolved, windows, resume ? &*resume : nullptr, stop, identity};
  const Status status = comm::run_rank_threads(
      run.ranks, world, [&](comm::RankContext& context) { return train::run_rank(context, inputs, outcome); });
  const Status recorded = directory.write("evidence.json", outcome.evidence.json());
  if (status.ok()) {
    if (!recorded.ok()) return recorded.error();
    return trained;
  }
  // The first cause decides how the run ends; its record is written where that is possible.
  if (!recorded.ok()) log_warning("{}", recorded.error().message());
  if (exit_code(status.error().code) == ExitCode::comm &&
      directory.write("logs/flight-records.txt", flight_records).ok()) {
    log_info("what each rank did last: {}", directory.file("logs/flight-records.txt"));
  }
  return status.error();
}

void print_summary(const Trained& trained, const CommonOptions& common) {
  const train::RunOutcome& o = trained.outcome;
  if (common.json) {
    auto number = [](const std::optional<double>& v) { return v ? Json(*v) : Json(nullptr); };
    Json lines = Json::array();
    for (const auto& line : o.lines) lines.push_back(Json::parse(line.json()));
    const Json document = {{"resumed_from", o.resumed_from},
                           {"last_step", o.last_step},
                           {"already_finished", trained.already_finished},
                           {"stopped", o.stopped},
                           {"first_loss", number(o.first_loss)},
                           {"last_loss", number(o.last_loss)},
                           {"eval_loss", number(o.valid_loss)},
                           {"test_loss", number(o.test_loss)},
                           {"train_seconds", o.train_seconds},
                           {"train_tokens", o.train_tokens},
                           {"memory_peak_bytes", o.memory_total_bytes},
                           {"reserved_max_bytes", o.reserved_max_bytes},
                           {"steps", lines},
                           {"evidence", Json::parse(o.evidence.json())}};
    fmt::print("{}\n", dump_json(document));
    return;
  }
  if (trained.already_finished) {
    print_text(fmt::format("The run is finished: step {} is its last.\n\n{}\n", o.last_step, o.evidence.table()));
    return;
  }
  if (o.lines.empty() && o.stopped) {
    fmt::print("Stopped before a step was done: run the same command to go on.\n");
    return;
  }
  print_text(fmt::format("\n{}\n", o.evidence.table()));
  fmt::print("loss {:.4f} -> {:.4f}", o.first_loss.value_or(0), o.last_loss.value_or(0));
  if (o.valid_loss) fmt::print(", validation {:.4f}", *o.valid_loss);
  if (o.test_loss) fmt::print(", test {:.4f}", *o.test_loss);
  fmt::print("\ntraining {} ({:.0f} tokens/s), peak memory {} over all ranks\n", format_seconds(o.train_seconds),
             static_cast<double>(o.train_tokens) / std::max(1e-9, o.train_seconds),
             format_bytes(static_cast<uint64_t>(o.memory_total_bytes)));
  if (o.reserved_max_bytes > 0) {
    fmt::print("the device's allocator reserved {} for the worst rank\n",
               format_bytes(static_cast<uint64_t>(o.reserved_max_bytes)));
  }
}

}  // namespace

void add_train(CLI::App& app, Run& run, const std::string& command_line) {
  struct Args {
    std::string recipe;
    std::string command_line;
    CommonOptions common;
    RunOptions options;
  };
  auto args = std::make_shared<Args>();
  args->command_line = command_line;
  CLI::App* command =
      app.add_subcommand("train", "trains a recipe; resumes by itself when the run directory holds a checkpoint");
  command->add_option("RECIPE", args->recipe, "recipe in TOML")->required();
  add_common(*command, args->common);
  add_run_options(*command, args->options);
  command->callback([args, &run] {
    run = [args] {
      if (args->common.verbose) set_log_level(LogLevel::debug);
      std::unique_ptr<LogFile> log;
      const auto outcome = run_training(args->recipe, args->options, args->command_line, stop_on_signals(), log);
      if (!outcome.ok()) return fail(outcome.error(), args->common);
      print_summary(*outcome, args->common);
      return static_cast<int>(outcome->outcome.stopped ? ExitCode::stopped : ExitCode::done);
    };
  });
}

}  // namespace penteract::cli
