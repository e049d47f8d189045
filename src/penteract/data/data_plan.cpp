// DataPlan of windows.h as JSON.
#include <fmt/format.h>

#include <cmath>

#include "penteract/base/json.h"
#include "penteract/data/windows.h"

namespace penteract::data {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 56;  // sums over the sources of a plan stay inside int64
constexpr int64_t kMaxEpoch = int64_t{1} << 40;
constexpr size_t kMaxStages = 1 << 12;

bool is_count(const Json& value, int64_t most) {
  return value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() <= most;
}

bool read_stage(const Json& value, DataStage& stage) {
  if (!value.is_object() || !value.contains("first_epoch") || !is_count(value["first_epoch"], kMaxEpoch)) return false;
  if (!value.contains("sources") || !value["sources"].is_array() || value["sources"].empty()) return false;
  stage.first_epoch = value["first_epoch"].get<int64_t>();
  for (const auto& source : value["sources"]) {
    if (!source.is_object() || !source.contains("tokens") || !is_count(source["tokens"], kMaxTokens) ||
        !source.contains("hash") || !source["hash"].is_string()) {
      return false;
    }
    stage.source_tokens.push_back(source["tokens"].get<int64_t>());
    stage.source_hashes.push_back(source["hash"].get<std::string>());
  }
  return true;
}

bool read_entry(const Json& value, DataPlan::Entry& entry) {
  if (!value.is_object() || !value.contains("weight") || !value["weight"].is_number()) return false;
  if (!value.contains("stages") || !value["stages"].is_array() || value["stages"].empty()) return false;
  entry.weight = value["weight"].get<double>();
  for (const auto& item : value["stages"]) {
    DataStage stage;
    if (entry.stages.size() >= kMaxStages || !read_stage(item, stage)) return false;
    if (entry.stages.empty() ? stage.first_epoch != 0 : stage.first_epoch <= entry.stages.back().first_epoch)
      return false;
    entry.stages.push_back(std::move(stage));
  }
  return std::isfinite(entry.weight);
}

}  // namespace

std::string DataPlan::to_json() const {
  Json entries_json = Json::array();
  for (const Entry& entry : entries) {
    Json stages = Json::array();
    for (const DataStage& stage : entry.stages) {
      Json sources = Json::array();
      for (size_t i = 0; i < stage.source_tokens.size(); ++i) {
        sources.push_back({{"tokens", stage.source_tokens[i]}, {"hash", stage.source_hashes[i]}});
      }
      stages.push_back({{"first_epoch", stage.first_epoch}, {"sources", std::move(sources)}});
    }
    entries_json.push_back({{"weight", entry.weight}, {"stages", std::move(stages)}});
  }
  return Json{{"seq_length", seq_length}, {"entries", std::move(entries_json)}}.dump();
}

Result<DataPlan> DataPlan::from_json(const std::string& text, const std::string& culprit) {
  const Error malformed{ErrorCode::checkpoint_malformed, "holds no data plan", culprit,
                        "the checkpoint is damaged: use another one"};
  auto json = parse_json(text, culprit);
  if (!json.ok() || !json->is_object() || !json->contains("seq_length") || !json->contains("entries")) return malformed;
  DataPlan plan;
  if (!is_count((*json)["seq_length"], INT32_MAX) || !(*json)["entries"].is_array()) return malformed;
  plan.seq_length = (*json)["seq_length"].get<int64_t>();
  for (const auto& item : (*json)["entries"]) {
    Entry entry;
    if (!read_entry(item, entry)) return malformed;
    plan.entries.push_back(std::move(entry));
  }
  if (plan.seq_length < 1 || plan.entries.empty()) return malformed;
  return plan;
}

}  // namespace penteract::data
