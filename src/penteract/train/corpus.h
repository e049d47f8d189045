// The data of a run: tokenizer and tokenised files, opened once before the ranks start (under no deadline) and shared
// by them. Immutable after open, thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penteract/base/result.h"
#include "penteract/data/tokenizer.h"
#include "penteract/data/windows.h"
#include "penteract/spec/run_spec.h"

namespace penteract::train {

class Corpus {
 public:
  // Tokenises what is not in `cache_dir` yet, with a progress line. run.model.vocab_size must be known.
  // `stop`, once set, ends it within a moment. Errors: tokenizer_*, dataset_*, text_malformed, storage_*, interrupted.
  static Result<Corpus> open(const spec::RunSpec& run, std::shared_ptr<const data::Tokenizer> tokenizer,
                             const std::string& cache_dir, const std::atomic<bool>* stop = nullptr);

  // The windows that training draws from; `saved` and `next_sample` as in data::TrainingWindows.
  Result<data::TrainingWindows> training_windows(const std::optional<data::DataPlan>& saved, int64_t next_sample) const;
  const data::EvalWindows* valid() const { return valid_ ? &*valid_ : nullptr; }  // null where the recipe has none
  const data::EvalWindows* test() const { return test_ ? &*test_ : nullptr; }
  std::string description() const;  // one sentence for the evidence

 private:
  std::vector<data::TrainingWindows::Entry> entries_;
  int64_t seq_length_ = 0;
  uint64_t seed_ = 0;
  int64_t train_documents_ = 0, train_tokens_ = 0, empty_documents_ = 0;
  std::optional<data::EvalWindows> valid_, test_;
};

// Loads the tokenizer of a recipe and fills model.vocab_size where it is not given.
// Errors: tokenizer_* (tokenizer_vocab where its ids exceed the model's vocabulary).
Result<std::shared_ptr<const data::Tokenizer>> load_tokenizer(spec::RunSpec& run);

// What makes token ids mean the same, whatever the paths: a checkpoint keeps it.
struct TokenizerIdentity {
  std::string fingerprint;  // of the content
  int64_t eod = -1;
};
Result<TokenizerIdentity> identify_tokenizer(const spec::RunSpec& run, const data::Tokenizer& tokenizer);

// Opens held-out files as one stream of windows. `name` is the culprit in errors; `stop` as for Corpus::open.
Result<data::EvalWindows> open_eval_windows(const spec::RunSpec& run, const data::Tokenizer& tokenizer,
                                            const std::vector<std::string>& paths, const std::string& name,
                                            const std::string& cache_dir, const std::atomic<bool>* stop = nullptr);

}  // namespace penteract::train
