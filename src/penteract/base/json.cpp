#include "penteract/base/json.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "penteract/base/file.h"

namespace penteract {
namespace {
constexpr int kMaxDepth = 64;
}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& culprit) {
  std::string problem;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto callback = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth && problem.empty()) problem = fmt::format("is nested deeper than {} levels", kMaxDepth);
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && problem.empty()) {
      const auto key = parsed.get<std::string>();
      if (!keys.back().insert(key).second) problem = fmt::format("has the key \"{}\" twice in one object", key);
    }
    return problem.empty();
  };
  try {
    Json value = Json::parse(text.begin(), text.end(), callback);
    if (!problem.empty()) return Error{ErrorCode::file_malformed, problem, culprit, ""};
    return value;
  } catch (const Json::exception& e) {
    return Error{ErrorCode::file_malformed, problem.empty() ? fmt::format("is not JSON: {}", e.what()) : problem,
                 culprit, ""};
  }
}

Result<Json> read_json(const std::string& path, uint64_t max_bytes) {
  PENT_ASSIGN(const std::string text, read_file(path, max_bytes));
  return parse_json(text, path);
}

std::string dump_json(const Json& document) { return document.dump(2, ' ', false, Json::error_handler_t::replace); }

}  // namespace penteract
