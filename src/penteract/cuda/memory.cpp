#include "penteract/cuda/memory.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <mutex>
#include <unordered_map>

#include "penteract/comm/ledger_allocator.h"

namespace penteract::cuda {
namespace {

using Entry = c10::CachingDeviceAllocator::TraceEntry;

// The allocator calls the hook under its own lock; the hook takes this one and nothing else.
class Books {
 public:
  std::shared_ptr<RankMemory> own(void* stream) {
    const std::lock_guard lock(mutex_);
    auto memory = std::make_shared<RankMemory>();
    memory->account = comm::lease_account();
    owners_[stream] = memory;
    return memory;
  }

  void disown(void* stream) {
    const std::lock_guard lock(mutex_);
    owners_.erase(stream);
  }

  void note(const Entry& entry) {
    const std::lock_guard lock(mutex_);
    switch (entry.action_) {
      case Entry::ALLOC: {
        const auto owner = owners_.find(entry.stream_);
        if (owner == owners_.end()) return;
        const MemoryKind kind = current_memory_kind();
        owner->second->account->charge(kind, entry.size_);
        blocks_[entry.addr_] = {owner->second, kind, entry.size_};
        return;
      }
      case Entry::FREE_COMPLETED: {
        const auto block = blocks_.find(entry.addr_);
        if (block == blocks_.end()) return;
        block->second.memory->account->credit(block->second.kind, block->second.size);
        blocks_.erase(block);
        return;
      }
      case Entry::SEGMENT_ALLOC: {
        const auto owner = owners_.find(entry.stream_);
        if (owner == owners_.end()) return;
        RankMemory& memory = *owner->second;
        memory.reserved_bytes += entry.size_;
        memory.peak_reserved_bytes = std::max(memory.peak_reserved_bytes.load(), memory.reserved_bytes.load());
        segments_[entry.addr_] = {owner->second, MemoryKind::workspace, entry.size_};
        return;
      }
      case Entry::SEGMENT_FREE: {
        const auto segment = segments_.find(entry.addr_);
        if (segment == segments_.end()) return;
        segment->second.memory->reserved_bytes -= segment->second.size;
        segments_.erase(segment);
        return;
      }
      default: return;
    }
  }

 private:
  struct Block {
    std::shared_ptr<RankMemory> memory;
    MemoryKind kind;
    uint64_t size;
  };
  std::mutex mutex_;
  std::unordered_map<void*, std::shared_ptr<RankMemory>> owners_;  // by stream
  std::unordered_map<size_t, Block> blocks_, segments_;            // by address
};

// The allocator is the process's and keeps its hooks for ever.
Books& books() {
  static Books* const books = [] {
    auto* made = new Books;
    c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker([made](const Entry& entry) { made->note(entry); });
    return made;
  }();
  return *books;
}

}  // namespace

std::shared_ptr<RankMemory> own_stream(cudaStream_t stream) { return books().own(stream); }
void disown_stream(cudaStream_t stream) { books().disown(stream); }

}  // namespace penteract::cuda
