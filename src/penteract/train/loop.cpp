#include "penteract/train/loop.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "penteract/base/log.h"
#include "penteract/base/text.h"
#include "penteract/checkpoint/save.h"
#include "penteract/spec/flops.h"
#include "penteract/train/evaluate.h"
#include "penteract/train/lr_schedule.h"
#include "penteract/train/progress.h"
#include "penteract/train/state_io.h"
#include "penteract/train/tensorboard.h"

namespace penteract::train {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class RankLoop {
 public:
  RankLoop(comm::RankContext& context, const RunInputs& inputs, RunOutcome& outcome, LogFile& log)
      : context_(context),
        log_(log),
        in_(inputs),
        run_(inputs.run),
        out_(outcome),
        engine_(context, inputs.run, parallel::Holding::training),
        lead_(context.rank == 0) {}

  Status run() {
    write_place();
    PENT_TRY(load_or_initialise());
    PENT_TRY(observe_start());
    if (lead_) {
      out_.resumed_from = counters_.step;
      PENT_ASSIGN(auto log, MetricsLog::open(in_.directory.file("metrics.jsonl"), counters_.step));
      metrics_.emplace(std::move(log));
      PENT_ASSIGN(auto curves, TensorBoardLog::open(in_.directory.file("tb"), counters_.step));
      curves_.emplace(std::move(curves));
    }
    while (counters_.step < run_.steps) {
      PENT_TRY(step());
      if (stopping_) return {};
    }
    return {};
  }

 private:
  void write_place() {
    const topology::Coord& c = engine_.groups().coord;
    log_.write(fmt::format("rank {} of {}: tp {} cp {} dp {} pp {}, etp {} ep {} edp {}; {} from step {}",
                           context_.rank, context_.num_ranks, c.tp, c.cp, c.dp, c.pp, c.etp, c.ep, c.edp,
                           in_.resume == nullptr ? "starts" : "goes on",
                           in_.resume == nullptr ? 0 : in_.resume->counters.step));
  }

  // Every group of the layout meets once and sees the ranks that it should; then the parameters that all ranks own are
  // counted against the table.
  Status observe_start() {
    const parallel::Groups& g = engine_.groups();
    bool as_asked = true;
    for (const comm::Group* group : {&g.tp, &g.cp, &g.pp, &g.tp_cp, &g.dp_cp, &g.ep, &g.etp, &g.etp_ep}) {
      const auto seen = group->all_gather_int64({context_.rank}, {.tag = "groups"});
      as_asked &= std::equal(seen.begin(), seen.end(), group->ranks().begin(), group->ranks().end());
    }
    int64_t owned = 0;
    for (const auto& buffer : engine_.store().buffers()) {
      for (const auto& piece : engine_.store().owned_pieces(buffer)) owned += piece.count;
    }
    const auto all = context_.world.all_gather_int64({as_asked, owned}, {.tag = "groups"});
    int64_t total = 0;
    for (size_t i = 0; i < all.size(); i += 2) as_asked &= all[i] != 0, total += all[i + 1];
    if (!lead_) return {};
    const auto& l = run_.layout;
    out_.evidence.set(Fact::groups, as_asked,
                      fmt::format("{} ranks met in all groups: tp {} cp {} dp {} pp {}; etp {} ep {} edp {}",
                                  context_.num_ranks, l.tp, l.cp, l.dp, l.pp, l.etp, l.ep, l.edp));
    out_.evidence.set(Fact::model, total == engine_.store().num_parameters(),
                      fmt::format("{} of {} parameters, each on one owner; layers a stage: {}; sp {}", total,
                                  engine_.store().num_parameters(), stage_text(), l.sp ? "on" : "off"));
    out_.evidence.set(Fact::data, true, in_.corpus.description());
    return {};
  }

  std::string stage_text() {
    std::vector<int> counts(run_.layout.pp, 0);
    for (int stage : engine_.store().stage_of_layer()) ++counts[stage];
    return fmt::format("{}", fmt::join(counts, "|"));
  }

  Status load_or_initialise() {
    if (in_.resume == nullptr) {
      engine_.init_weights();
      return {};
    }
    counters_ = in_.resume->counters;
    return load_training_state(*in_.resume->reader, engine_.store());
  }

  Status step() {
    const int64_t step = counters_.step + 1;
    const double lr = learning_rate(run_.optimizer, run_.steps, step);
    const auto start = Clock::now();
    const model::StepResult result = engine_.train_step(
        [&](int64_t row, model::Row& out) {
          or_throw(in_.windows.sample(counters_.samples + row, out.tokens.data()));
          return true;
        },
        lr, counters_.updates + 1);
    const double seconds = seconds_since(start);
    log_.write(fmt::format("step {}: {:.0f} ms, peak memory {}", step, seconds * 1e3,
                           format_bytes(context_.memory.peak_bytes())));
    counters_.step = step;
    counters_.samples += run_.global_batch;
    counters_.tokens += result.target_tokens;
    const bool updated = !result.nonfinite && result.target_tokens > 0;
    counters_.updates += updated;
    counters_.skipped += !updated;
    counters_.skipped_in_a_row = result.nonfinite ? counters_.skipped_in_a_row + 1 : 0;

    // One exchange: a signal at any rank stops all at this step; the worst rank's memory.
    const bool stop_here = in_.stop.load();
    const auto all =
        context_.world.all_gather_int64({stop_here ? 1 : 0, static_cast<int64_t>(context_.memory.peak_bytes()),
                                         static_cast<int64_t>(context_.peak_reserved_bytes())},
                                        {.tag = "step end"});
    int64_t memory_max = 0, memory_sum = 0;
    bool stop = false;
    for (size_t i = 0; i < all.size(); i += 3) {
      stop |= all[i] != 0;
      memory_max = std::max(memory_max, all[i + 1]);
      memory_sum += all[i + 1];
      note_reserved(all[i + 2]);
    }
    stopping_ = stop && step < run_.steps;

    StepLine line;
    line.step = step;
    line.result = result;
    line.lr = lr;
    line.tokens = counters_.tokens;
    line.step_ms = seconds * 1e3;
    line.tokens_per_s = static_cast<double>(result.target_tokens) / seconds;
    line.tflops = 3 * spec::forward_flops_per_token(run_.model, run_.data.seq_length) * line.tokens_per_s /
                  context_.num_ranks * 1e-12;
    line.skipped = counters_.skipped;
    line.memory_max_bytes = memory_max;
    if (lead_) report_step(line, seconds, memory_sum);
    evaluate_if_due(step, line);
    if (lead_) {
      out_.lines.push_back(line);
      PENT_TRY(metrics_->append(line));
      PENT_TRY(curves_->append(line));
    }
    if (counters_.skipped_in_a_row > run_.max_skipped_steps) {
      return Error{ErrorCode::nonfinite,
                   fmt::format("{} steps in a row were skipped, the last at step {}: gradients are not finite",
                               counters_.skipped_in_a_row, step),
                   "train.max_skipped_steps",
                   "lower optimizer.lr, look at the data of these steps, or resume from an older checkpoint"};
    }
    return save_if_due(step);
  }

  void note_reserved(int64_t bytes) {
    if (lead_) out_.reserved_max_bytes = std::max(out_.reserved_max_bytes, bytes);
  }

  void report_step(const StepLine& line, double seconds, int64_t memory_sum) {
    const model::StepResult& r = line.result;
    if (!out_.first_loss) out_.first_loss = r.loss;
    out_.last_loss = r.loss;
    out_.last_step = line.step;
    out_.train_seconds += seconds;
    out_.train_tokens += r.target_tokens;
    out_.memory_total_bytes = memory_sum;
    if (std::isfinite(r.loss))
      out_.evidence.set(Fact::forward, true,
                        fmt::format("loss {:.4f} at step {}, {:.4f} at step {}", *out_.first_loss,
                                    out_.resumed_from + 1, r.loss, line.step));
    if (std::isfinite(r.grad_norm) && r.grad_norm > 0)
      out_.evidence.set(Fact::backward, true,
                        fmt::format("gradient norm {:.4f} at step {}, summed over {} reduction classes on rank 0",
                                    r.grad_norm, line.step, engine_.store().buffers().size()));
    out_.evidence.set(Fact::finite, counters_.skipped == 0,
                      fmt::format("{} steps skipped of {}", counters_.skipped, line.step));
    progress_.step(line, run_.steps);
  }

  void evaluate_if_due(int64_t step, StepLine& line) {
    const bool last = step == run_.steps;
    const bool due = last || (run_.eval_every > 0 && step % run_.eval_every == 0);
    if (const data::EvalWindows* valid = in_.corpus.valid(); due && valid != nullptr) {
      const EvalSummary summary =
          evaluate(engine_, *valid, run_.eval_steps * run_.global_batch, last ? nullptr : &in_.stop);
      if (summary.interrupted) {
        stopping_ = true;
        return;
      }
      line.eval_loss = summary.loss;
      if (lead_) {
        out_.valid_loss = summary.loss;
        out_.evidence.set(
            Fact::validation, std::isfinite(summary.loss),
            fmt::format("validation loss {:.4f} over {} tokens at step {}", summary.loss, summary.target_tokens, step));
        log_info("validation loss {:.4f}, perplexity {:.1f} ({} tokens)", summary.loss, std::exp(summary.loss),
                 summary.target_tokens);
      }
    }
    if (const data::EvalWindows* test = in_.corpus.test(); last && test != nullptr) {
      const EvalSummary summary = evaluate(engine_, *test, run_.eval_steps * run_.global_batch);
      line.test_loss = summary.loss;
      if (lead_) {
        out_.test_loss = summary.loss;
        log_info("test loss {:.4f}, perplexity {:.1f} ({} tokens)", summary.loss, std::exp(summary.loss),
                 summary.target_tokens);
        if (out_.valid_loss) {
          out_.evidence.set(
              Fact::validation, std::isfinite(summary.loss) && std::isfinite(*out_.valid_loss),
              fmt::format("validation loss {:.4f}, test loss {:.4f} at step {}", *out_.valid_loss, summary.loss, step));
        }
      }
    }
  }

  Status save_if_due(int64_t step) {
    const bool last = step == run_.steps || stopping_;
    if (!last && (run_.checkpoint.every == 0 || step % run_.checkpoint.every != 0)) return {};
    const auto start = Clock::now();
    checkpoint::SharedState state;
    state.step = step;
    state.tokens = counters_.tokens;
    state.samples = counters_.samples;
    state.seed = run_.seed;
    state.layout = topology::to_string(run_.layout);
    state.recipe_toml = in_.recipe_toml;
    state.extra_json = encode_run_state(counters_, in_.windows.plan(), in_.tokenizer);
    const Status saved = checkpoint::save(context_.world, in_.directory.checkpoints(), state,
                                          checkpoint_pieces(engine_.store()), run_.checkpoint.keep);
    if (!saved.ok()) {
      if (last || run_.checkpoint.on_error == "stop") return saved;
      if (lead_)
        log_warning("the checkpoint of step {} was not saved, training goes on: {}", step, saved.error().message());
      return {};
    }
    if (lead_) {
      if (stopping_) out_.stopped = true;
      out_.evidence.set(
          Fact::checkpoint, true,
          fmt::format("step {} written by {} ranks: {}", step, context_.num_ranks, in_.directory.checkpoints()));
      log_info("checkpoint of step {} saved in {:.1f} s", step, seconds_since(start));
      if (stopping_) log_info("stopped after step {}: run the same command to go on", step);
    }
    return {};
  }

  comm::RankContext& context_;
  LogFile& log_;  // of this rank
  const RunInputs& in_;
  const spec::RunSpec& run_;
  RunOutcome& out_;
  model::Engine engine_;
  const bool lead_;
  Counters counters_;
  std::optional<MetricsLog> metrics_;
  std::optional<TensorBoardLog> curves_;
  Progress progress_;
  bool stopping_ = false;
};

}  // namespace

Status run_rank(comm::RankContext& context, const RunInputs& inputs, RunOutcome& outcome) {
  PENT_ASSIGN(const auto log, LogFile::open(inputs.directory.log_of_rank(context.rank)));
  try {
    Status status = RankLoop(context, inputs, outcome, *log).run();
    log->write(status.ok() ? "ended" : "ended with an error: " + printable(status.error().message()));
    return status;
  } catch (const std::exception& e) {
    log->write(fmt::format("ended with an error: {}", printable(e.what())));
    throw;
  }
}

}  // namespace penteract::train
