// TOML files as ConfigDocuments, with the line of each value (toml++). Errors: recipe_syntax, file errors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "penteract/base/config_table.h"

namespace penteract {

// Top-level tables become sections; a top-level key is an error. Dates are refused.
Result<ConfigDocument> parse_toml(std::string_view text, const std::string& origin,
                                  const std::vector<std::string>& sets = {});

// Reads a file; `sets` are "section.key=value" of the command line, value in TOML (a bare word is a text), and win.
Result<ConfigDocument> read_toml(const std::string& path, const std::vector<std::string>& sets = {});

// A text as a TOML basic string, quoted.
std::string toml_quote(std::string_view text);

}  // namespace penteract
