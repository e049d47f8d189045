#include "penteract/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "penteract/base/file.h"
#include "penteract/base/text.h"

namespace penteract {
namespace {
constexpr int kMaxDepth = 64;

// Where the parser stopped, in the reader's words and not the library's.
std::string syntax_problem(std::string_view text, size_t num_read) {
  if (num_read > text.size() || text.empty()) return "is not JSON: it ends too early";
  const size_t at = num_read > 0 ? num_read - 1 : 0;
  const std::string_view before = text.substr(0, at);
  const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t start = before.rfind('\n') + 1;  // 0 where there is none
  const bool several = text.find('\n') < text.size() - 1;
  return fmt::format("is not JSON: {}column {}: {} is not expected there",
                     several ? fmt::format("line {}, ", line) : "", at - start + 1, quote_line(text.substr(at), 12));
}
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
      if (!keys.back().insert(key).second) problem = fmt::format("has the key {} twice in one object", quote_line(key));
    }
    return problem.empty();
  };
  try {
    Json value = Json::parse(text.begin(), text.end(), callback);
    if (problem.empty()) return value;
  } catch (const Json::parse_error& e) {
    if (problem.empty()) problem = syntax_problem(text, e.byte);
  } catch (const Json::exception&) {
    if (problem.empty()) problem = "is not JSON that can be read: a number is out of range";
  }
  return Error{ErrorCode::file_malformed, problem, culprit, "the file is damaged or of another kind: make it again"};
}

Result<Json> read_json(const std::string& path, uint64_t max_bytes) {
  PENT_ASSIGN(const std::string text, read_file(path, max_bytes));
  return parse_json(text, path);
}

std::string dump_json(const Json& document) { return document.dump(2, ' ', false, Json::error_handler_t::replace); }

}  // namespace penteract
