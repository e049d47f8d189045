// JSON files as ConfigTables: a Hugging Face config.json is read by the same code as a recipe's [model].
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "penteract/base/config_table.h"

namespace penteract {

// The top-level object of a file of at most 16 MiB. A null is an absent key. Errors: file_*; file_malformed where the
// document is no object.
Result<ConfigTable> read_json_config(const std::string& path);

}  // namespace penteract
