#include "penteract/data/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace penteract::data {

Status parallel_for(int64_t count, int num_threads, const std::function<Status(int64_t)>& fn) {
  std::atomic<int64_t> next{0}, first_bad{count};
  std::mutex mutex;
  Status status;
  std::exception_ptr thrown;
  const auto work = [&] {
    for (int64_t i = next++; i < count && i < first_bad; i = next++) {
      try {
        Status one = fn(i);
        if (one.ok()) continue;
        const std::lock_guard lock(mutex);
        if (i < first_bad) {
          first_bad = i;
          status = std::move(one);
        }
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (thrown == nullptr) thrown = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> others;
    const int64_t threads = std::min<int64_t>(num_threads, count);
    for (int64_t t = 1; t < threads; ++t) others.emplace_back(work);
    work();
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
  return status;
}

}  // namespace penteract::data
