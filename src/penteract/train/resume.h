// What a run goes on from: the newest complete checkpoint of its folder, held against the recipe before any rank starts.
// Thread-safety: pure functions; a ResumePoint is read by all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "penteract/checkpoint/reader.h"
#include "penteract/data/windows.h"
#include "penteract/spec/run_spec.h"
#include "penteract/train/corpus.h"

namespace penteract::train {

// What a run counts, apart from weights; stands in every checkpoint.
struct Counters {
  int64_t step = 0;
  int64_t updates = 0;  // steps that changed weights
  int64_t samples = 0;  // drawn: the data position, whatever the batch sizes were
  int64_t tokens = 0;   // targets seen
  int64_t skipped = 0;
  int64_t skipped_in_a_row = 0;
};

// The caller's part of a checkpoint's shared state (SharedState::extra_json), and back.
std::string encode_run_state(const Counters& counters, const data::DataPlan& plan, const TokenizerIdentity& tokenizer);

// Whether the tokenizer is the one that the checkpoint's run read its texts with, wherever its file lies now; ok for a
// state that does not tell. `path` is the tokenizer's, for the message. Errors: recipe_changed, checkpoint_malformed.
Status check_tokenizer(const checkpoint::SharedState& state, const TokenizerIdentity& now, const std::string& path);

struct ResumePoint {
  std::string step_dir;
  std::unique_ptr<checkpoint::Reader> reader;
  Counters counters;
  data::DataPlan plan;
};

// Prints what is resumed and what the recipe changes, or that the run starts fresh (then nothing is returned). Every
// checkpoint that is passed over is a warning. Errors: checkpoint_damaged (none is whole), checkpoint_malformed,
// recipe_changed (also another tokenizer), recipe_unsupported (another layout).
Result<std::optional<ResumePoint>> find_resume_point(const std::string& checkpoints_dir, const spec::RunSpec& run,
                                                     const std::string& recipe_toml,
                                                     const TokenizerIdentity& tokenizer);

}  // namespace penteract::train
