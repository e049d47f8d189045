#include "penteract/base/memory_ledger.h"

namespace penteract {
namespace {
thread_local MemoryAccount* t_account = nullptr;
thread_local MemoryKind t_kind = MemoryKind::activations;
}  // namespace

std::string_view memory_kind_name(MemoryKind kind) {
  static constexpr std::string_view kNames[kNumMemoryKinds] = {"weights",     "gradients",     "optimizer",
                                                               "activations", "communication", "workspace"};
  return kNames[static_cast<int>(kind)];
}

bool MemoryAccount::charge(MemoryKind kind, uint64_t bytes) {
  if (fail_in_.load(std::memory_order_relaxed) > 0 && fail_in_.fetch_sub(1) == 1) return false;
  const uint64_t now = current_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const uint64_t limit = limit_.load(std::memory_order_relaxed);
  if (limit != 0 && now > limit) {
    current_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  by_kind_[static_cast<int>(kind)].fetch_add(bytes, std::memory_order_relaxed);
  uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return true;
}

void MemoryAccount::credit(MemoryKind kind, uint64_t bytes) {
  current_.fetch_sub(bytes, std::memory_order_relaxed);
  by_kind_[static_cast<int>(kind)].fetch_sub(bytes, std::memory_order_relaxed);
}

MemoryAccount* current_account() { return t_account; }
void set_current_account(MemoryAccount* account) { t_account = account; }

MemoryKind current_memory_kind() { return t_kind; }
MemoryKindScope::MemoryKindScope(MemoryKind kind) : before_(t_kind) { t_kind = kind; }
MemoryKindScope::~MemoryKindScope() { t_kind = before_; }

}  // namespace penteract
