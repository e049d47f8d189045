#include "penteract/train/evidence.h"

#include <fmt/format.h>

#include <algorithm>

#include "penteract/base/json.h"
#include "penteract/base/text.h"

namespace penteract::train {
namespace {
constexpr std::array<const char*, kNumFacts> kNames = {"groups",   "model",  "data",       "forward",
                                                       "backward", "finite", "checkpoint", "validation"};
constexpr size_t kDetailsWidth = 80;
}  // namespace

void Evidence::set(Fact fact, bool ok, std::string details) {
  facts_[static_cast<int>(fact)] = {ok, std::move(details)};
}

std::string Evidence::json() const {
  nlohmann::ordered_json out;
  for (int i = 0; i < kNumFacts; ++i) out[kNames[i]] = {{"ok", facts_[i].ok}, {"details", facts_[i].details}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Evidence> Evidence::parse(const std::string& text, const std::string& culprit) {
  PENT_ASSIGN(const Json json, parse_json(text, culprit));
  Evidence evidence;
  for (int i = 0; i < kNumFacts; ++i) {
    const char* name = kNames[static_cast<size_t>(i)];
    const Json* fact = json.is_object() && json.contains(name) ? &json[name] : nullptr;
    if (fact == nullptr || !fact->is_object() || !fact->contains("ok") || !(*fact)["ok"].is_boolean() ||
        !fact->contains("details") || !(*fact)["details"].is_string()) {
      return Error{ErrorCode::file_malformed, fmt::format("does not say whether \"{}\" was observed", name), culprit,
                   "it was changed or cut short; the checkpoints do not depend on it"};
    }
    evidence.set(static_cast<Fact>(i), (*fact)["ok"].get<bool>(), (*fact)["details"].get<std::string>());
  }
  return evidence;
}

std::string Evidence::table() const {
  std::vector<std::vector<std::string>> rows = {{"fact", "ok", "what was seen"}};
  for (int i = 0; i < kNumFacts; ++i) {
    // Long details go on below, so that the table keeps its width.
    std::string rest = facts_[i].details, name = kNames[i], ok = facts_[i].ok ? "yes" : "NO";
    do {
      size_t cut = rest.size() <= kDetailsWidth ? rest.size() : rest.rfind(' ', kDetailsWidth);
      if (cut == std::string::npos || cut == 0) cut = std::min(rest.size(), kDetailsWidth);
      rows.push_back({name, ok, rest.substr(0, cut)});
      rest = std::string(trim(std::string_view(rest).substr(cut)));
      name = ok = "";
    } while (!rest.empty());
  }
  return format_table(rows);
}

}  // namespace penteract::train
