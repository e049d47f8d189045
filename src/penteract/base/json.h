// JSON of files that may be hostile: bounded size and depth, duplicate keys refused.
// Include this, not nlohmann's header, and only in .cpp files: it costs 2 s of compile time.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "penteract/base/result.h"

namespace penteract {

using Json = nlohmann::json;

// Parses `text`; `culprit` names the file in errors (file_malformed). Refuses nesting above 64 and duplicate keys.
Result<Json> parse_json(std::string_view text, const std::string& culprit);

// The document with two spaces of indentation; bytes that are no UTF-8 (a path may hold them) become U+FFFD.
std::string dump_json(const Json& document);

// Reads and parses a file of at most max_bytes.
Result<Json> read_json(const std::string& path, uint64_t max_bytes = uint64_t{1} << 28);

}  // namespace penteract
