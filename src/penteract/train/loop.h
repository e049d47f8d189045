// The training loop of one rank, and what the ranks of a run share. Thread-safety: run_rank on each rank thread;
// RunOutcome is rank 0's until the ranks have ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penteract/comm/world.h"
#include "penteract/spec/run_spec.h"
#include "penteract/train/corpus.h"
#include "penteract/train/evidence.h"
#include "penteract/train/metrics.h"
#include "penteract/train/resume.h"
#include "penteract/train/run_directory.h"

namespace penteract::train {

struct RunInputs {
  const spec::RunSpec& run;
  const Corpus& corpus;
  const RunDirectory& directory;
  std::string recipe_toml;  // resolved
  const data::TrainingWindows& windows;
  const ResumePoint* resume;      // null: a fresh start
  const std::atomic<bool>& stop;  // set by a signal: save and stop after the step
  TokenizerIdentity tokenizer;
};

struct RunOutcome {
  Evidence evidence;
  std::vector<StepLine> lines;  // of this process
  std::optional<double> first_loss, last_loss, valid_loss, test_loss;
  int64_t resumed_from = 0;  // step; 0 = a fresh start
  int64_t last_step = 0;
  bool stopped = false;      // before the last step, after saving
  double train_seconds = 0;  // steps alone: no evaluation, no saving
  int64_t train_tokens = 0;
  int64_t memory_total_bytes = 0;  // sum of the ranks' peaks
  int64_t reserved_max_bytes = 0;  // the most that the device's allocator took for a rank; 0 on the CPU
};

// Loads or initialises, trains, evaluates, saves; what the rank logs goes to logs/ too. Errors: checkpoint_*, nonfinite, storage_*.
// COLLECTIVE: world.
Status run_rank(comm::RankContext& context, const RunInputs& inputs, RunOutcome& outcome);

}  // namespace penteract::train
