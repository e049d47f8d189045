// The line that a person watches while text is tokenised. Thread-safety: for IngestOptions::progress.
#pragma once

#include <cstdint>
#include <functional>

namespace penteract::data {

// Logs a line every two seconds at most, so that short work stays silent.
std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress_lines();

}  // namespace penteract::data
