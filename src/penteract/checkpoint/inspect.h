// What a checkpoint or a safetensors file holds, for `penteract inspect`. Thread-safety: pure functions.
#pragma once

#include <string>

#include "penteract/base/result.h"

namespace penteract::checkpoint {

struct Description {
  std::string json;  // one document
  std::string text;  // a table of at most 100 columns
};

// Whether describe() knows what to do with this path: a safetensors file, a step directory, a folder of steps.
bool is_describable(const std::string& path);

// Reads headers and catalogs, no data. Errors: checkpoint_missing (none of the three), those of reading them.
Result<Description> describe(const std::string& path);

}  // namespace penteract::checkpoint
