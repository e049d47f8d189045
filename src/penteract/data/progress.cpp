#include "penteract/data/progress.h"

#include <chrono>

#include "penteract/base/log.h"
#include "penteract/base/text.h"

namespace penteract::data {

std::function<void(uint64_t, uint64_t)> progress_lines() {
  using Clock = std::chrono::steady_clock;
  return [last = Clock::now()](uint64_t done_bytes, uint64_t total_bytes) mutable {
    const auto now = Clock::now();
    if (now - last < std::chrono::seconds(2)) return;
    last = now;
    log_info("tokenising: {} of {}", format_bytes(done_bytes), format_bytes(total_bytes));
  };
}

}  // namespace penteract::data
