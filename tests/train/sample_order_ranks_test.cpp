// The training loop itself, with checkpoints on disk: which samples its steps saw is read off its losses. With lr = 0
// the weights stay what they were, so the loss of a step is the mean of its samples' losses, each known from a run with
// one sample a step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>

#include "data/sample_stream.h"
#include "parity/small_models.h"
#include "penteract/base/log.h"
#include "penteract/families/registry.h"
#include "penteract/spec/recipe.h"
#include "penteract/train/loop.h"

namespace penteract::train {
namespace {

struct Batch {
  int dp;
  int64_t micro, global;
};

class SampleOrderRanks : public ::testing::Test {
 protected:
  SampleOrderRanks() {
    run_ = parity::small_dense();
    run_.family = run_.model.family = "qwen3";
    run_.model.num_layers = 1;
    run_.model.moe_layers = {false};
    run_.data.seq_length = 4;
    run_.optimizer.lr = run_.optimizer.min_lr = 0;
    set_log_level(LogLevel::warning);
  }
  ~SampleOrderRanks() override { set_log_level(LogLevel::info); }

  data::DatasetList windows(int32_t count) {
    const int32_t num_tokens = count * static_cast<int32_t>(run_.data.seq_length) + 1;
    // The first dataset is always the same: later ones are what was appended.
    data::DatasetList list = {data::counting_dataset(folder_, 0, 29)};
    if (num_tokens > 29) list.push_back(data::counting_dataset(folder_, 29, num_tokens - 29));
    return list;
  }

  // A process as the program runs it: starts, or resumes what `dir` holds, and ends after step `last`, or after one step
  // where `stop` is set. The losses of its steps.
  std::vector<double> process(const std::string& dir, const Batch& batch, int32_t num_windows, int64_t last,
                              bool stop = false) {
    spec::RunSpec run = run_;
    run.layout.dp = run.layout.edp = batch.dp;
    run.micro_batch = batch.micro;
    run.global_batch = batch.global;
    run.steps = last;
    const std::string recipe = spec::to_toml(run, families::write_model(run.model));
    const auto directory = or_throw(RunDirectory::open(folder_.path(dir)));
    const auto resume = or_throw(find_resume_point(directory.checkpoints(), run, recipe, {}));
    const auto windows_of_run = or_throw(data::TrainingWindows::create(
        {{windows(num_windows), 1, "train"}}, run.data.seq_length, run.seed,
        resume ? std::optional(resume->plan) : std::nullopt, resume ? resume->reader->state().samples : 0));
    const Corpus corpus;
    const std::atomic<bool> stop_flag = stop;
    RunOutcome outcome;
    const RunInputs inputs{run, corpus, directory, recipe, windows_of_run, resume ? &*resume : nullptr, stop_flag, {}};
    comm::WorldOptions options;
    options.intra_op_threads = 1;
    const Status status = comm::run_rank_threads(
        batch.dp, options, [&](comm::RankContext& context) { return run_rank(context, inputs, outcome); });
    EXPECT_TRUE(status.ok()) << status.error().message();
    std::vector<double> losses;
    for (const StepLine& line : outcome.lines) losses.push_back(line.result.loss);
    return losses;
  }

  // The loss of each window, from an epoch with one sample a step.
  std::vector<double> losses_of_windows(int32_t num_windows) {
    const auto losses = process("alone", {1, 1, 1}, num_windows, 2 * num_windows);
    const auto ids = data::expected_ids({{0, num_windows}}, 2 * num_windows, run_.seed);
    std::vector<double> of_window(static_cast<size_t>(num_windows));
    for (size_t k = 0; k < losses.size(); ++k) {
      double& loss = of_window[static_cast<size_t>(ids[k].window)];
      // The second epoch sees the same windows in another order.
      if (ids[k].epoch == 1) {
        EXPECT_EQ(losses[k], loss) << "sample " << k;
      }
      loss = losses[k];
    }
    std::vector<double> sorted = of_window;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 1; i < sorted.size(); ++i)
      EXPECT_GT(sorted[i] - sorted[i - 1], 1e-6) << "losses tell windows apart";
    return of_window;
  }

  // fp64: the order of a handful of additions.
  static void expect_losses(const std::vector<double>& losses, const std::vector<Batch>& of_step,
                            const std::vector<data::StreamId>& ids, const std::vector<double>& of_window) {
    ASSERT_EQ(losses.size(), of_step.size());
    size_t sample = 0;
    for (size_t step = 0; step < losses.size(); ++step) {
      double sum = 0;
      for (int64_t row = 0; row < of_step[step].global; ++row) {
        sum += of_window[static_cast<size_t>(ids.at(sample++).window)];
      }
      ASSERT_NEAR(losses[step], sum / static_cast<double>(of_step[step].global), 1e-12) << "step " << step + 1;
    }
  }

  data::TempFolder folder_;
  spec::RunSpec run_;
};

constexpr int32_t kNumWindows = 7;

TEST_F(SampleOrderRanks, NoBatchAndNoPairOfResumesChangesWhatTheStepsSee) {
  const auto of_window = losses_of_windows(kNumWindows);
  const auto ids = data::expected_ids({{0, kNumWindows}}, 100, run_.seed);
  // Up to two epochs and a half; in the last one 1 and 6 samples end at the epoch's edge.
  for (const auto& [before, after] : {std::pair{Batch{2, 2, 4}, Batch{2, 1, 6}},
                                      {Batch{3, 1, 3}, Batch{3, 2, 6}},
                                      {Batch{1, 1, 1}, Batch{1, 3, 6}}}) {
    constexpr int64_t kSteps = 4;
    for (int64_t first = 1; first < kSteps; ++first) {
      for (int64_t second = first + 1; second <= kSteps; ++second) {
        SCOPED_TRACE(fmt::format("dp {}, global {} until step {}, {} until step {}", before.dp, before.global, first,
                                 after.global, second));
        const std::string dir = fmt::format("run-{}-{}-{}-{}", before.dp, before.global, first, second);
        std::vector<double> losses;
        std::vector<Batch> of_step;
        for (const auto& [batch, last] : {std::pair{before, first}, {after, second}, {before, kSteps + 1}}) {
          const auto part = process(dir, batch, kNumWindows, last);
          losses.insert(losses.end(), part.begin(), part.end());
          of_step.resize(static_cast<size_t>(last), batch);
        }
        expect_losses(losses, of_step, ids, of_window);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// A stop after each step, the epochs' edges (7 and 14 samples) among them, and data appended at one of them.
TEST_F(SampleOrderRanks, AStopAfterEveryStepAndAppendedDataChangeNothingElse) {
  constexpr int32_t kMoreWindows = 12;
  const auto of_window = losses_of_windows(kMoreWindows);
  const Batch batch{1, 1, 1};
  // At the edge of the first epoch, and when the second has begun, which then ends as it was.
  for (const auto& [appended, num_steps] : {std::pair<int64_t, int64_t>{7, 7 + 12 + 2}, {8, 7 + 7 + 12 + 1}}) {
    const std::string dir = fmt::format("appended-{}", appended);
    std::vector<double> losses;
    while (static_cast<int64_t>(losses.size()) < num_steps) {
      const auto done = static_cast<int64_t>(losses.size());
      const auto part = process(dir, batch, done < appended ? kNumWindows : kMoreWindows, num_steps, true);
      ASSERT_EQ(part.size(), 1u) << "a run that is told to stop does one step";
      losses.push_back(part[0]);
    }
    const auto ids = data::expected_ids({{0, kNumWindows}, {appended, kMoreWindows}}, num_steps, run_.seed);
    SCOPED_TRACE(fmt::format("appended after step {}", appended));
    expect_losses(losses, std::vector<Batch>(static_cast<size_t>(num_steps), batch), ids, of_window);
  }
}

}  // namespace
}  // namespace penteract::train
