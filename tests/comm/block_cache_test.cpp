#include "penteract/comm/block_cache.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace penteract::comm {
namespace {

TEST(BlockCache, ClassesWasteAnEighthAtMostAndAreStable) {
  for (size_t size : {size_t{1}, size_t{100}, (size_t{1} << 20) + 1, size_t{5'000'000}, size_t{1} << 33}) {
    const size_t rounded = BlockCache::size_class(size);
    EXPECT_GE(rounded, size);
    EXPECT_LE(rounded, size + size / 8 + 1);
    EXPECT_EQ(BlockCache::size_class(rounded), rounded);
  }
}

TEST(BlockCache, DropsTheOldestAboveItsBound) {
  BlockCache cache(3 << 20);
  const size_t size = 1 << 20;
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(cache.take(size));
  for (void* block : blocks) cache.give(block, size);
  EXPECT_EQ(cache.cached_bytes(), 3u << 20);
  EXPECT_EQ(cache.largest_cached_bytes(), size);
  // The newest comes first; the first that was given is gone.
  for (int i = 3; i >= 1; --i) EXPECT_EQ(cache.take(size), blocks[i]);
  EXPECT_EQ(cache.cached_bytes(), 0u);
  EXPECT_EQ(cache.largest_cached_bytes(), 0u);
  for (int i = 1; i < 4; ++i) cache.give(blocks[i], size);
}

TEST(BlockCache, GivesNothingBeyondTheMachine) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizers' malloc ends the process instead";
#endif
  BlockCache cache(1 << 20);
  EXPECT_EQ(cache.take(size_t{1} << 60), nullptr);
}

TEST(BlockCache, ServesSeveralThreads) {
  BlockCache cache(32 << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 200; ++i) {
        const size_t size = BlockCache::size_class((size_t{1} << 20) + static_cast<size_t>(i % 5) * 300000);
        int* block = static_cast<int*>(cache.take(size));
        *block = t;
        EXPECT_EQ(*block, t);
        cache.give(block, size);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache.cached_bytes(), 32u << 20);
}

}  // namespace
}  // namespace penteract::comm
