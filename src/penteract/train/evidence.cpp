#include "penteract/train/evidence.h"

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
