#include "penteract/data/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "penteract/base/check.h"
#include "penteract/base/rng.h"

namespace penteract::data {
namespace {

int64_t windows_of(int64_t num_tokens, int64_t seq_length) { return std::max<int64_t>(0, num_tokens - 1) / seq_length; }

Error too_short(const std::string& name, int64_t num_tokens, int64_t seq_length) {
  return {ErrorCode::dataset_empty,
          fmt::format("holds {} tokens, one window of seq_length {} needs {}", num_tokens, seq_length, seq_length + 1),
          name, "give more text or a smaller data.seq_length"};
}

Error changed(const std::string& name, const std::string& what) {
  return {ErrorCode::recipe_changed, what, name,
          "a resumed run may only append data; start a new run (another run.dir) for other data"};
}

Result<DataStage> stage_of_all(const TrainingWindows::Entry& entry, int64_t first_epoch) {
  DataStage stage{first_epoch, {}, {}};
  for (const auto& dataset : entry.datasets) {
    stage.source_tokens.push_back(dataset->num_tokens());
    PENT_ASSIGN(std::string hash, sample_hash(*dataset, dataset->num_tokens()));
    stage.source_hashes.push_back(std::move(hash));
  }
  return stage;
}

}  // namespace

Result<std::vector<TrainingWindows::Stage>> TrainingWindows::stages_of(const Entry& entry,
                                                                       const std::vector<DataStage>& plan,
                                                                       int64_t seq_length) {
  std::vector<Stage> stages;
  for (const DataStage& stage : plan) {
    TokenStream stream(entry.datasets, stage.source_tokens);
    const int64_t num_windows = windows_of(stream.num_tokens(), seq_length);
    if (num_windows == 0) return too_short(entry.name, stream.num_tokens(), seq_length);
    int64_t first_sample = 0;
    if (!stages.empty()) {
      const Stage& last = stages.back();
      if (__builtin_mul_overflow(stage.first_epoch - last.first_epoch, last.num_windows, &first_sample) ||
          __builtin_add_overflow(first_sample, last.first_sample, &first_sample)) {
        return Error{ErrorCode::checkpoint_malformed, "a data plan of more samples than can be counted", entry.name,
                     "the checkpoint is damaged: use another one"};
      }
    }
    stages.push_back({stage.first_epoch, first_sample, num_windows, std::move(stream)});
  }
  return stages;
}

// Checks that what was drawn from is still there, and lets what came after join at the epoch after next_sample's.
Status TrainingWindows::extend(const Entry& entry, std::vector<DataStage>& plan, int64_t seq_length,
                               int64_t next_sample) {
  for (const DataStage& stage : plan) {
    if (stage.source_tokens.size() > entry.datasets.size()) {
      return changed(entry.name, fmt::format("the run has read {} sources here, now there are {}",
                                             stage.source_tokens.size(), entry.datasets.size()));
    }
    for (size_t i = 0; i < stage.source_tokens.size(); ++i) {
      const auto& dataset = *entry.datasets[i];
      if (dataset.num_tokens() < stage.source_tokens[i]) {
        return changed(entry.name, fmt::format("source {} had {} tokens when the run read it, now it has {}", i,
                                               stage.source_tokens[i], dataset.num_tokens()));
      }
      PENT_ASSIGN(const std::string hash, sample_hash(dataset, stage.source_tokens[i]));
      if (hash != stage.source_hashes[i]) {
        return changed(entry.name, fmt::format("source {} holds other tokens than those the run has read", i));
      }
    }
  }
  PENT_ASSIGN(DataStage now, stage_of_all(entry, 0));
  if (now.source_tokens == plan.back().source_tokens) return {};
  PENT_ASSIGN(const auto stages, stages_of(entry, plan, seq_length));
  const auto after =
      std::find_if(stages.begin(), stages.end(), [&](const Stage& s) { return s.first_sample >= next_sample; });
  if (after != stages.end()) {  // a stage of which nothing was drawn: the new one takes its place
    now.first_epoch = after->first_epoch;
    plan.resize(static_cast<size_t>(after - stages.begin()));
  } else {
    const Stage& last = stages.back();
    now.first_epoch = last.first_epoch + (next_sample - last.first_sample + last.num_windows - 1) / last.num_windows;
  }
  plan.push_back(std::move(now));
  return {};
}

Result<TrainingWindows> TrainingWindows::create(std::vector<Entry> entries, int64_t seq_length, uint64_t seed,
                                                const std::optional<DataPlan>& saved, int64_t next_sample) {
  PENT_CHECK(!entries.empty() && seq_length >= 1 && next_sample >= 0, "{} entries, seq_length {}, sample {}",
             entries.size(), seq_length, next_sample);
  if (entries.size() > BlendSchedule::kMaxSources) {
    return Error{ErrorCode::recipe_range, fmt::format("a blend of {} entries", entries.size()), "data.train",
                 fmt::format("at most {} are drawn from", BlendSchedule::kMaxSources)};
  }
  std::vector<double> weights;
  for (const auto& entry : entries) {
    if (!std::isfinite(entry.weight) || entry.weight <= 0) {
      return Error{ErrorCode::recipe_range, fmt::format("weight {} is not above 0", entry.weight), entry.name,
                   "give each entry of a blend a weight above 0, or leave it out"};
    }
    weights.push_back(entry.weight);
  }
  TrainingWindows windows(BlendSchedule(weights), seed);
  if (saved.has_value()) {
    if (saved->seq_length != seq_length) {
      return changed("data.seq_length", fmt::format("was {}, now it is {}", saved->seq_length, seq_length));
    }
    if (saved->entries.size() != entries.size()) {
      return changed("data.train",
                     fmt::format("the blend had {} entries, now it has {}", saved->entries.size(), entries.size()));
    }
    windows.plan_ = *saved;
  } else {
    windows.plan_ = {seq_length, std::vector<DataPlan::Entry>(entries.size())};
  }
  for (size_t e = 0; e < entries.size(); ++e) {
    auto& plan = windows.plan_.entries[e];
    if (!saved.has_value()) {
      PENT_ASSIGN(DataStage stage, stage_of_all(entries[e], 0));
      plan = {entries[e].weight, {std::move(stage)}};
    } else if (plan.weight != entries[e].weight) {
      return changed(entries[e].name, fmt::format("had weight {}, now {}", plan.weight, entries[e].weight));
    } else {
      const int64_t drawn = windows.schedule_.count(static_cast<int64_t>(e), next_sample);
      PENT_TRY(extend(entries[e], plan.stages, seq_length, drawn));
    }
    PENT_ASSIGN(auto stages, stages_of(entries[e], plan.stages, seq_length));
    windows.stages_.push_back(std::move(stages));
  }
  return windows;
}

const TrainingWindows::Stage& TrainingWindows::stage_at(size_t entry, int64_t sample) const {
  const auto& stages = stages_[entry];
  const auto after = std::upper_bound(stages.begin(), stages.end(), sample,
                                      [](int64_t s, const Stage& stage) { return s < stage.first_sample; });
  return *(after - 1);
}

TrainingWindows::Place TrainingWindows::place(int64_t k) const {
  const auto draw = schedule_.draw(k);
  const Stage& stage = stage_at(static_cast<size_t>(draw.source), draw.index);
  const int64_t within = draw.index - stage.first_sample;
  const int64_t epoch = stage.first_epoch + within / stage.num_windows;
  const std::string purpose =
      stages_.size() == 1 ? fmt::format("epoch {}", epoch) : fmt::format("entry {} epoch {}", draw.source, epoch);
  const auto window = permute_index(philox_key(seed_, purpose), static_cast<uint64_t>(stage.num_windows),
                                    static_cast<uint64_t>(within % stage.num_windows));
  return {draw.source, epoch, static_cast<int64_t>(window), stage.num_windows};
}

Status TrainingWindows::sample(int64_t k, int32_t* out) const {
  const Place at = place(k);
  const auto draw = schedule_.draw(k);
  const Stage& stage = stage_at(static_cast<size_t>(draw.source), draw.index);
  return stage.stream.read(at.window * seq_length(), seq_length() + 1, out);
}

int64_t TrainingWindows::num_windows() const {
  int64_t sum = 0;
  for (const auto& stages : stages_) sum += stages.back().num_windows;
  return sum;
}

int64_t TrainingWindows::num_left_over() const {
  int64_t sum = 0;
  for (const auto& stages : stages_) {
    sum += stages.back().stream.num_tokens() - 1 - stages.back().num_windows * seq_length();
  }
  return sum;
}

Result<EvalWindows> EvalWindows::create(const DatasetList& datasets, int64_t seq_length, const std::string& name) {
  PENT_CHECK_GE(seq_length, 1);
  TokenStream stream(datasets);
  if (windows_of(stream.num_tokens(), seq_length) == 0) return too_short(name, stream.num_tokens(), seq_length);
  return EvalWindows(std::move(stream), seq_length);
}

Status EvalWindows::window(int64_t i, int32_t* out) const {
  PENT_CHECK(i >= 0 && i < num_windows(), "window {} of {}", i, num_windows());
  return stream_.read(i * seq_length_, seq_length_ + 1, out);
}

}  // namespace penteract::data
