// penteract probe MODEL --ids FILE --out FILE
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "penteract/base/json.h"
#include "penteract/base/log.h"
#include "penteract/cli/commands.h"
#include "penteract/cli/model_source.h"
#include "penteract/families/registry.h"
#include "penteract/infer/probe.h"
#include "penteract/infer/probe_files.h"

namespace penteract::cli {
namespace {

struct Args {
  std::string model, ids, out, record, replay;
  bool gradients = false;
  CommonOptions common;
  RunOptions options;
};

struct Outcome {
  std::string model, layout, precision;
  infer::ProbeOutput output;
};

Result<Outcome> run_probe(const Args& args) {
  Outcome outcome;
  PENT_ASSIGN(const ModelSource source, open_model(args.model));
  PENT_ASSIGN(const spec::RunSpec run, run_of(source, args.options));
  PENT_ASSIGN(const families::Family* family, families::find_family(run.model.family));
  outcome.model = source.path;
  outcome.layout = topology::to_string(run.layout);
  outcome.precision = spec::recipe_name(run.precision);
  PENT_ASSIGN(infer::ProbeInput input, infer::read_probe_input(args.ids, run.model.vocab_size));
  if (!args.replay.empty()) {
    PENT_ASSIGN(input.replay, infer::read_routes(args.replay, run.model, input.ids.size(0), input.ids.size(1)));
  }
  if (!args.record.empty() && !run.model.has_experts()) {
    return Error{ErrorCode::invalid_argument, "the model has no experts to record", "--record-routes", "leave it out"};
  }
  if (!input.is_target.any().item<bool>()) log_warning("{}: no position is a target, so the loss is 0", args.ids);
  if (input.ids.size(1) > run.model.max_position_embeddings) {
    log_warning("{}: {} positions, the model was made for {}", args.ids, input.ids.size(1),
                run.model.max_position_embeddings);
  }
  log_info("probing {} on {} rank{}: {}", source.path, run.ranks, run.ranks == 1 ? "" : "s", outcome.layout);
  infer::ProbeOptions options;
  options.gradients = args.gradients;
  options.record_routes = !args.record.empty();
  PENT_ASSIGN(const comm::WorldOptions world, world_options(run, args.options));
  PENT_ASSIGN(outcome.output, infer::probe(run, world, *source.weights, family->hf_tensors(run.model), input, options));
  PENT_TRY(infer::write_probe_output(args.out, outcome.output, run.precision == spec::Recipe::fp64));
  if (!args.record.empty()) PENT_TRY(infer::write_routes(args.record, outcome.output.routes));
  return outcome;
}

}  // namespace

void add_probe(CLI::App& app, Run& run) {
  auto args = std::make_shared<Args>();
  CLI::App* command =
      app.add_subcommand("probe", "one forward, or forward and backward, on given tokens: logits, loss, gradients");
  command->add_option("MODEL", args->model, "checkpoint, run directory or Hugging Face directory")->required();
  command->add_option("--ids", args->ids, "safetensors with ids [batch, seq] and optionally loss_mask")->required();
  command->add_option("--out", args->out, "safetensors to write: logits, loss, grad.NAME")->required();
  command->add_flag("--gradients", args->gradients, "run the backward too");
  command->add_option("--record-routes", args->record, "write the experts chosen to this file");
  command->add_option("--replay-routes", args->replay, "take the experts of this file");
  add_common(*command, args->common);
  add_run_options(*command, args->options);
  command->callback([args, &run] {
    run = [args] {
      const auto o = run_probe(*args);
      if (!o.ok()) return fail(o.error(), args->common);
      const infer::ProbeOutput& out = o->output;
      if (args->common.json) {
        const Json document = {
            {"model", o->model},          {"layout", o->layout}, {"precision", o->precision},    {"loss", out.loss},
            {"targets", out.num_targets}, {"out", args->out},    {"gradients", out.grads.size()}};
        fmt::print("{}\n", dump_json(document));
      } else {
        fmt::print("loss {:.9g} over {} targets ({}, {}); wrote {}\n", out.loss, out.num_targets, o->layout,
                   o->precision, args->out);
      }
      return static_cast<int>(ExitCode::done);
    };
  });
}

}  // namespace penteract::cli
