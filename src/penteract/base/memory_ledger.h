// Who holds how much memory: one account a rank, with the kinds that plan uses. No libtorch here; comm/ installs the
// allocator that charges it. Thread-safety: all functions may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace penteract {

enum class MemoryKind : uint8_t { weights, gradients, optimizer, activations, communication, workspace };
inline constexpr int kNumMemoryKinds = 6;
std::string_view memory_kind_name(MemoryKind kind);

// One rank's account, in bytes. A limit of 0 is none.
class MemoryAccount {
 public:
  // False when the limit would be passed; then nothing is charged.
  bool charge(MemoryKind kind, uint64_t bytes);
  void credit(MemoryKind kind, uint64_t bytes);

  uint64_t current_bytes() const { return current_.load(std::memory_order_relaxed); }
  uint64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }
  uint64_t current_bytes(MemoryKind kind) const {
    return by_kind_[static_cast<int>(kind)].load(std::memory_order_relaxed);
  }
  void set_limit_bytes(uint64_t bytes) { limit_.store(bytes); }
  uint64_t limit_bytes() const { return limit_.load(); }
  // Makes the n-th charge from now fail (1 = the next); 0 = never. For tests.
  void fail_charge_in(int64_t n) { fail_in_.store(n); }
  void reset_peak() { peak_.store(current_.load()); }

 private:
  std::atomic<uint64_t> current_{0}, peak_{0}, limit_{0};
  std::atomic<int64_t> fail_in_{0};
  std::array<std::atomic<uint64_t>, kNumMemoryKinds> by_kind_{};
};

// The account that this thread charges; null outside rank threads. The account must outlive every block charged to it.
MemoryAccount* current_account();
void set_current_account(MemoryAccount* account);

// The kind that this thread's allocations are charged as, until the scope ends. Default: activations.
MemoryKind current_memory_kind();
class MemoryKindScope {
 public:
  explicit MemoryKindScope(MemoryKind kind);
  ~MemoryKindScope();
  MemoryKindScope(const MemoryKindScope&) = delete;
  MemoryKindScope& operator=(const MemoryKindScope&) = delete;

 private:
  MemoryKind before_;
};

}  // namespace penteract
