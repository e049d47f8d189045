// A counter that threads sleep on: a futex word and the number of its sleepers, so that an add without sleepers costs
// no system call. Sleeps are sliced by the caller, who looks at abort and deadline between them.
// Thread-safety: all functions.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace penteract::comm {

class Counter {
 public:
  uint32_t value() const { return value_.load(std::memory_order_seq_cst); }
  // Returns the value after the add. Sleepers stay asleep until wake_all.
  uint32_t add() { return value_.fetch_add(1, std::memory_order_seq_cst) + 1; }
  void wake_all() {
    if (num_sleepers_.load(std::memory_order_seq_cst) == 0) return;
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  // Sleeps while the value is `seen`, at most `slice`; may return early.
  void sleep(uint32_t seen, std::chrono::nanoseconds slice) {
    timespec time{slice.count() / 1'000'000'000, slice.count() % 1'000'000'000};
    num_sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (value() == seen) {
      syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value_), FUTEX_WAIT_PRIVATE, seen, &time, nullptr, 0);
    }
    num_sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }

 private:
  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> num_sleepers_{0};
};
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

inline void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace penteract::comm
