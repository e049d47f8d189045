// Ends long work on data when a signal asks for it. Thread-safety: pure functions.
#pragma once

#include <atomic>

#include "penteract/base/result.h"

namespace penteract::data {

// Whether the flag (null: never) is set.
inline bool stopped(const std::atomic<bool>* stop) { return stop != nullptr && stop->load(std::memory_order_relaxed); }

// The error `interrupted` once the flag is set.
inline Status check_stop(const std::atomic<bool>* stop) {
  if (!stopped(stop)) return {};
  return Error{ErrorCode::interrupted, "stopped by a signal; texts that were not done yet begin anew",
               "reading the data", "run the same command to go on"};
}

}  // namespace penteract::data
