#include "penteract/train/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "penteract/base/log.h"
#include "penteract/data/ingest.h"
#include "penteract/data/progress.h"

namespace penteract::train {
namespace {

Result<std::vector<data::OpenSource>> open_paths(const spec::RunSpec& run, const data::Tokenizer& tokenizer,
                                                 const std::vector<std::string>& paths, const std::string& cache_dir,
                                                 const std::atomic<bool>* stop) {
  data::IngestOptions options;
  options.tokenizer = &tokenizer;
  PENT_ASSIGN(options.eod, data::eod_id(tokenizer, run.data.tokenizer_path, run.data.eod));
  options.cache_dir = cache_dir;
  options.stop = stop;
  options.num_threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  options.progress = data::progress_lines();
  return data::open_sources(paths, options, run.model.vocab_size);
}

}  // namespace

Result<std::shared_ptr<const data::Tokenizer>> load_tokenizer(spec::RunSpec& run) {
  PENT_ASSIGN(auto loaded, data::Tokenizer::load(run.data.tokenizer_path, run.data.tokenizer_kind));
  std::shared_ptr<const data::Tokenizer> tokenizer = std::move(loaded);
  if (run.model.vocab_size == 0) run.model.vocab_size = tokenizer->vocab_size();
  if (tokenizer->vocab_size() > run.model.vocab_size) {
    return Error{ErrorCode::tokenizer_vocab,
                 fmt::format("has ids up to {}, but the model's vocab_size is {}", tokenizer->vocab_size() - 1,
                             run.model.vocab_size),
                 run.data.tokenizer_path,
                 fmt::format("set model.vocab_size to at least {}, or leave it out", tokenizer->vocab_size())};
  }
  return tokenizer;
}

Result<TokenizerIdentity> identify_tokenizer(const spec::RunSpec& run, const data::Tokenizer& tokenizer) {
  PENT_ASSIGN(const int32_t eod, data::eod_id(tokenizer, run.data.tokenizer_path, run.data.eod));
  return TokenizerIdentity{tokenizer.fingerprint(), eod};
}

Result<data::EvalWindows> open_eval_windows(const spec::RunSpec& run, const data::Tokenizer& tokenizer,
                                            const std::vector<std::string>& paths, const std::string& name,
                                            const std::string& cache_dir, const std::atomic<bool>* stop) {
  PENT_ASSIGN(const auto sources, open_paths(run, tokenizer, paths, cache_dir, stop));
  data::DatasetList datasets;
  for (const auto& source : sources) datasets.push_back(source.dataset);
  return data::EvalWindows::create(datasets, run.data.seq_length, name);
}

Result<Corpus> Corpus::open(const spec::RunSpec& run, std::shared_ptr<const data::Tokenizer> tokenizer,
                            const std::string& cache_dir, const std::atomic<bool>* stop) {
  Corpus corpus;
  corpus.seq_length_ = run.data.seq_length;
  corpus.seed_ = run.seed;
  std::vector<std::string> paths;
  bool blend = false;
  for (const auto& source : run.data.train) {
    paths.push_back(source.path);
    blend |= source.weight.has_value();
  }
  PENT_ASSIGN(const auto sources, open_paths(run, *tokenizer, paths, cache_dir, stop));
  for (size_t i = 0; i < sources.size(); ++i) {
    // A plain list is one stream; as soon as one weight is given every path is an entry of a blend.
    if (blend || corpus.entries_.empty())
      corpus.entries_.push_back({{}, run.data.train[i].weight.value_or(1.0), blend ? paths[i] : "data.train"});
    corpus.entries_.back().datasets.push_back(sources[i].dataset);
    corpus.train_documents_ += sources[i].counts.text.documents;
    corpus.empty_documents_ += sources[i].counts.text.empty_documents;
    corpus.train_tokens_ += sources[i].counts.num_tokens;
  }
  if (corpus.empty_documents_ > 0) log_info("{} blank documents were left out", corpus.empty_documents_);
  if (!run.data.valid.empty()) {
    PENT_ASSIGN(auto windows, open_eval_windows(run, *tokenizer, run.data.valid, "data.valid", cache_dir, stop));
    corpus.valid_.emplace(std::move(windows));
  }
  if (!run.data.test.empty()) {
    PENT_ASSIGN(auto windows, open_eval_windows(run, *tokenizer, run.data.test, "data.test", cache_dir, stop));
    corpus.test_.emplace(std::move(windows));
  }
  return corpus;
}

Result<data::TrainingWindows> Corpus::training_windows(const std::optional<data::DataPlan>& saved,
                                                       int64_t next_sample) const {
  return data::TrainingWindows::create(entries_, seq_length_, seed_, saved, next_sample);
}

std::string Corpus::description() const {
  return fmt::format("{} documents, {} tokens to train on; {} windows for validation, {} for the test",
                     train_documents_, train_tokens_, valid_ ? valid_->num_windows() : 0,
                     test_ ? test_->num_windows() : 0);
}

}  // namespace penteract::train
