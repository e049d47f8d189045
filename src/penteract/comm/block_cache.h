// Large blocks of memory, kept when freed and handed out again. Sizes are rounded up to an eighth of a power of two,
// so that blocks of changing sizes (routed tokens) meet again. Above its bound the cache drops the block that was
// freed longest ago. Thread-safety: all functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <mutex>

namespace penteract::comm {

class BlockCache {
 public:
  explicit BlockCache(uint64_t max_cached_bytes) : max_cached_bytes_(max_cached_bytes) {}
  ~BlockCache() { set_max_cached_bytes(0); }

  // The smallest size class that holds size_bytes. REQUIRES: size_bytes > 0.
  static size_t size_class(size_t size_bytes);

  // A block of a size class, aligned to 64 bytes; null when the machine has none, even with the cache emptied.
  void* take(size_t class_bytes);
  void give(void* block, size_t class_bytes);

  void set_max_cached_bytes(uint64_t bytes);
  uint64_t cached_bytes() const;
  uint64_t largest_cached_bytes() const;

 private:
  struct Free {
    void* block;
    size_t class_bytes;
  };
  using FreeList = std::list<Free>;  // oldest first
  void drop_oldest();

  mutable std::mutex mutex_;
  uint64_t max_cached_bytes_;
  uint64_t cached_bytes_ = 0;
  FreeList free_;
  std::map<size_t, std::deque<FreeList::iterator>> by_class_;
};

}  // namespace penteract::comm
