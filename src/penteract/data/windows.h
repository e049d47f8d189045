// Windows of seq_length + 1 tokens, each sharing its last token with the next: a stream of T tokens has
// (T − 1) / seq_length whole ones; the rest is left over and counted. Immutable, thread-safe.
//
// Training: sample k of a run is a pure function of (seed, k), so a resume needs nothing but k. Every epoch of a
// stream is a permutation of all its windows: epoch e shows permute_index(philox_key(seed, "epoch e"), num_windows, i)
// as its i-th. A blend draws from its entries by BlendSchedule, each entry with epochs of its own (key "entry n epoch e"
// where there are several).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penteract/base/result.h"
#include "penteract/data/blend.h"
#include "penteract/data/token_stream.h"

namespace penteract::data {

// From epoch first_epoch on, an entry's stream is the first source_tokens[i] tokens of its i-th dataset, joined.
struct DataStage {
  int64_t first_epoch = 0;
  std::vector<int64_t> source_tokens;
  std::vector<std::string> source_hashes;  // sample_hash of those tokens
};

// What a run has drawn from, in full: stored with a checkpoint, so that data appended later joins at the next epoch
// and changes nothing that was drawn before.
struct DataPlan {
  struct Entry {
    double weight = 1;
    std::vector<DataStage> stages;
  };
  int64_t seq_length = 0;
  std::vector<Entry> entries;

  std::string to_json() const;
  // Error: checkpoint_malformed.
  static Result<DataPlan> from_json(const std::string& text, const std::string& culprit);
};

class TrainingWindows {
 public:
  struct Entry {
    DatasetList datasets;
    double weight = 1;
    std::string name;  // for messages
  };
  // A list of paths is one entry; a blend has one for each weight. On a resume `saved` is the plan of the checkpoint and
  // next_sample the first that is not drawn yet: more tokens in a dataset and more datasets in an entry join at the
  // next epoch; anything else is recipe_changed. Errors besides: dataset_empty (no whole window), recipe_range (weight).
  static Result<TrainingWindows> create(std::vector<Entry> entries, int64_t seq_length, uint64_t seed,
                                        const std::optional<DataPlan>& saved = std::nullopt, int64_t next_sample = 0);

  struct Place {
    int64_t entry = 0, epoch = 0;
    int64_t window = 0;       // of the entry's stream in that epoch
    int64_t num_windows = 0;  // of that stream
  };
  Place place(int64_t k) const;

  // Writes the seq_length + 1 tokens of sample k. Errors: storage_read, dataset_token_range. REQUIRES: k >= 0.
  Status sample(int64_t k, int32_t* out) const;

  int64_t seq_length() const { return plan_.seq_length; }
  int64_t num_windows() const;    // of an epoch with all data, over all entries
  int64_t num_left_over() const;  // tokens an epoch that no whole window holds
  const DataPlan& plan() const { return plan_; }

 private:
  struct Stage {
    int64_t first_epoch = 0, first_sample = 0, num_windows = 0;
    TokenStream stream;
  };
  TrainingWindows(BlendSchedule schedule, uint64_t seed) : schedule_(std::move(schedule)), seed_(seed) {}
  static Result<std::vector<Stage>> stages_of(const Entry& entry, const std::vector<DataStage>& plan,
                                              int64_t seq_length);
  static Status extend(const Entry& entry, std::vector<DataStage>& plan, int64_t seq_length, int64_t next_sample);
  const Stage& stage_at(size_t entry, int64_t sample) const;

  BlendSchedule schedule_;
  uint64_t seed_;
  DataPlan plan_;
  std::vector<std::vector<Stage>> stages_;  // of each entry
};

// Evaluation: window i in the order of the stream, each once.
class EvalWindows {
 public:
  // Error: dataset_empty (no whole window), with `name` as the culprit.
  static Result<EvalWindows> create(const DatasetList& datasets, int64_t seq_length, const std::string& name);
  int64_t seq_length() const { return seq_length_; }
  int64_t num_windows() const { return (stream_.num_tokens() - 1) / seq_length_; }
  int64_t num_left_over() const { return stream_.num_tokens() - 1 - num_windows() * seq_length_; }
  // Writes seq_length + 1 tokens. Errors: as sample. REQUIRES: 0 <= i < num_windows().
  Status window(int64_t i, int32_t* out) const;

 private:
  EvalWindows(TokenStream stream, int64_t seq_length) : stream_(std::move(stream)), seq_length_(seq_length) {}
  TokenStream stream_;
  int64_t seq_length_;
};

}  // namespace penteract::data
