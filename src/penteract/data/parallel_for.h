// A loop over threads for work whose pieces do not meet. Internal to data/.
#pragma once

#include <cstdint>
#include <functional>

#include "penteract/base/result.h"

namespace penteract::data {

// Calls fn(i) for i in [0, count) on up to num_threads threads, the caller's among them; with one thread, in order.
// Returns the error of the lowest i that failed (pieces after a failure may be left out); rethrows what fn throws.
Status parallel_for(int64_t count, int num_threads, const std::function<Status(int64_t)>& fn);

}  // namespace penteract::data
