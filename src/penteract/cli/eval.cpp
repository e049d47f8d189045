// penteract eval MODEL --data PATH...
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>

#include "penteract/base/json.h"
#include "penteract/base/log.h"
#include "penteract/base/text.h"
#include "penteract/base/toml.h"
#include "penteract/cli/commands.h"
#include "penteract/cli/model_path.h"
#include "penteract/cli/options.h"
#include "penteract/cli/stop_signal.h"
#include "penteract/families/registry.h"
#include "penteract/spec/legality.h"
#include "penteract/train/corpus.h"
#include "penteract/train/evaluate.h"
#include "penteract/train/resume.h"
#include "penteract/train/state_io.h"

namespace penteract::cli {
namespace {

struct Args {
  std::string model, cache;
  std::vector<std::string> data;
  int64_t steps = 0;
  CommonOptions common;
  RunOptions options;
};

struct Outcome {
  std::string step_dir, layout;
  train::EvalSummary summary;
  int64_t left_over_tokens = 0;
};

// Rows of a step of --steps. The batch of the layout may hold more; the windows looked at do not change with it.
constexpr int kRows = 8;

// A key that an evaluation does not use would be ignored in silence.
Status check_sets(const std::vector<std::string>& sets) {
  for (const std::string& set : sets) {
    const std::string key(trim(std::string_view(set).substr(0, set.find('='))));
    const std::string section = key.substr(0, key.find('.'));
    std::string remedy;
    if (section == "batch")
      remedy = "an evaluation takes 8 windows a step whatever the batch; --steps says how many steps";
    if (section == "layout") remedy = "write it into --layout";
    if (key == "run.ranks") remedy = "use --ranks";
    if (key == "data.train" || key == "data.valid" || key == "data.test") remedy = "name the files with --data";
    if (key == "run.dir" || key == "run.seed" || section == "optimizer" || section == "train" || section == "router" ||
        section == "eval" || section == "checkpoint")
      remedy = "leave it out: it is for training";
    if (remedy.empty()) continue;
    return Error{ErrorCode::recipe_key, "would be ignored", fmt::format("--set {}", key), remedy};
  }
  return {};
}

Result<Outcome> run_eval(const Args& args) {
  Outcome outcome;
  const std::atomic<bool>& stop = stop_on_signals();
  PENT_TRY(check_sets(args.options.sets));
  PENT_ASSIGN(outcome.step_dir, resolve_step(args.model));
  PENT_ASSIGN(const auto reader, checkpoint::Reader::open(outcome.step_dir));
  PENT_ASSIGN(auto sets, sets_of(args.options));
  spec::LayoutOverride layout = layout_override(args.options);
  if (layout.layout.empty() && layout.ranks == 0) layout.layout = "tp=1";  // one rank unless something is said
  if (layout.layout.empty()) layout.layout = fmt::format("dp={}", layout.ranks);
  PENT_ASSIGN(const auto request, topology::parse_layout(layout.layout));
  PENT_ASSIGN(const auto completed, topology::complete_layout(request, layout.ranks));
  sets.push_back("batch.micro=1");
  sets.push_back(fmt::format("batch.global={}", (kRows + completed.dp - 1) / completed.dp * completed.dp));
  PENT_ASSIGN(auto document, parse_toml(reader->state().recipe_toml, outcome.step_dir, sets));
  PENT_ASSIGN(spec::RunSpec run, spec::read_recipe(std::move(document), families::read_model, layout));
  outcome.layout = topology::to_string(run.layout);
  PENT_TRY(spec::check_layout(run.model, run.layout));
  PENT_ASSIGN(const auto tokenizer, train::load_tokenizer(run));
  PENT_ASSIGN(const auto identity, train::identify_tokenizer(run, *tokenizer));
  PENT_TRY(train::check_tokenizer(reader->state(), identity, run.data.tokenizer_path));
  const std::string cache =
      args.cache.empty()
          ? fmt::format("{}/penteract-cache-{}", std::filesystem::temp_directory_path().string(), ::getuid())
          : args.cache;
  PENT_ASSIGN(const auto windows, train::open_eval_windows(run, *tokenizer, args.data, "--data", cache, &stop));
  outcome.left_over_tokens = windows.num_left_over();

  PENT_ASSIGN(const comm::WorldOptions world, world_options(run, args.options));
  log_info("evaluating {} on {} rank{}: {}", outcome.step_dir, run.ranks, run.ranks == 1 ? "" : "s", outcome.layout);
  const Status status = comm::run_rank_threads(run.ranks, world, [&](comm::RankContext& context) -> Status {
    model::Engine engine(context, run, parallel::Holding::weights);
    PENT_TRY(train::load_weights(checkpoint::StepWeights(*reader), engine.store()));
    const auto summary = train::evaluate(engine, windows, args.steps * kRows, &stop);
    if (context.rank == 0) outcome.summary = summary;
    return {};
  });
  if (!status.ok()) return status.error();
  if (outcome.summary.interrupted) {
    return Error{ErrorCode::interrupted, "stopped by a signal; an evaluation keeps nothing", "evaluation",
                 "run the same command to begin anew"};
  }
  return outcome;
}

}  // namespace

void add_eval(CLI::App& app, Run& run) {
  auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("eval", "loss and perplexity of a model over text or a dataset");
  command->add_option("MODEL", args->model, "run directory or checkpoint")->required();
  command->add_option("--data", args->data, "text, JSONL or .bin/.idx, joined in this order")->required();
  command->add_option("--steps", args->steps, "batches of 8 windows to look at; 0 = all")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--cache", args->cache, "folder for tokenised text");
  add_common(*command, args->common);
  add_run_options(*command, args->options);
  command->callback([args, &run] {
    run = [args] {
      const auto o = run_eval(*args);
      if (!o.ok()) return fail(o.error(), args->common);
      const double perplexity = std::exp(o->summary.loss);
      if (args->common.json) {
        const Json document = {{"model", o->step_dir},
                               {"layout", o->layout},
                               {"loss", o->summary.loss},
                               {"perplexity", perplexity},
                               {"tokens", o->summary.target_tokens},
                               {"windows", o->summary.num_windows},
                               {"left_over_tokens", o->left_over_tokens}};
        fmt::print("{}\n", dump_json(document));
      } else {
        fmt::print("loss {:.6f}  perplexity {:.3f}  over {} tokens in {} windows ({} tokens fill no window)\n",
                   o->summary.loss, perplexity, o->summary.target_tokens, o->summary.num_windows, o->left_over_tokens);
      }
      return static_cast<int>(ExitCode::done);
    };
  });
}

}  // namespace penteract::cli
