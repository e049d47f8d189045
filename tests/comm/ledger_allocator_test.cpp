#include "penteract/comm/ledger_allocator.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "comm/values.h"

namespace penteract::comm {
namespace {

using ::testing::HasSubstr;

class LedgerAllocator : public ::testing::Test {
 protected:
  void SetUp() override {
    install_ledger_allocator();
    set_current_account(account_.get());
  }
  void TearDown() override { set_current_account(nullptr); }
  std::shared_ptr<MemoryAccount> account_ = lease_account();
};

at::Tensor floats(int64_t count) { return at::empty({count}, at::kFloat); }

TEST_F(LedgerAllocator, ChargesByKindAndCreditsOnFree) {
  at::Tensor a = floats(100);
  EXPECT_EQ(account_->current_bytes(MemoryKind::activations), 400u);
  {
    MemoryKindScope scope(MemoryKind::optimizer);
    at::Tensor b = floats(1 << 20);
    EXPECT_EQ(account_->current_bytes(MemoryKind::optimizer), 4u << 20);
    EXPECT_EQ(account_->current_bytes(), (4u << 20) + 400);
  }
  EXPECT_EQ(account_->current_bytes(MemoryKind::optimizer), 0u);
  EXPECT_EQ(account_->peak_bytes(), (4u << 20) + 400);
  a = at::Tensor();
  EXPECT_EQ(account_->current_bytes(), 0u);
}

TEST_F(LedgerAllocator, BlocksAreAlignedAndWhole) {
  for (int64_t count : {1, 15, 16, 17, 1000, (1 << 18) - 16, 1 << 18, (1 << 18) + 1, 3 << 20}) {
    at::Tensor t = floats(count);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data_ptr()) % 64, 0u) << count;
    std::memset(t.data_ptr(), 0x5a, t.nbytes());
  }
  EXPECT_EQ(floats(0).numel(), 0);
  EXPECT_EQ(account_->current_bytes(), 0u);
}

TEST_F(LedgerAllocator, AFreeInAnotherThreadCreditsTheOwner) {
  at::Tensor t = floats(1 << 20);
  std::thread other([moved = std::move(t)]() mutable {
    EXPECT_EQ(current_account(), nullptr);
    moved = at::Tensor();
  });
  other.join();
  EXPECT_EQ(account_->current_bytes(), 0u);
  // A thread without an account is charged nowhere.
  std::thread([] { floats(1 << 20); }).join();
  EXPECT_EQ(account_->peak_bytes(), 4u << 20);
}

TEST_F(LedgerAllocator, AnAccountOutlivesItsBlocks) {
  MemoryAccount* raw = account_.get();
  at::Tensor t = floats(64);
  set_current_account(nullptr);
  account_.reset();
  std::shared_ptr<MemoryAccount> next = lease_account();
  EXPECT_NE(next.get(), raw);  // still charged
  t = at::Tensor();
  std::vector<std::shared_ptr<MemoryAccount>> all;
  bool again = false;
  for (int i = 0; i < 50; ++i) again = again || all.emplace_back(lease_account()).get() == raw;
  EXPECT_TRUE(again);
}

TEST_F(LedgerAllocator, TheLimitAndInjectedFailuresThrow) {
  account_->set_limit_bytes(1 << 20);
  at::Tensor fits = floats(1 << 17);
  try {
    floats(1 << 18);
    FAIL() << "no limit";
  } catch (const c10::OutOfMemoryError& e) {
    EXPECT_THAT(e.what(), HasSubstr("cannot allocate 1.00 MiB of activations: 512 KiB allocated, limit 1.00 MiB"));
  }
  EXPECT_EQ(account_->current_bytes(), 1u << 19);
  account_->set_limit_bytes(0);
  account_->fail_charge_in(2);
  floats(4);
  EXPECT_THROW(floats(4), c10::OutOfMemoryError);
  floats(4);
}

TEST_F(LedgerAllocator, WhatTheMachineCannotGiveIsNotCharged) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizers' malloc ends the process instead";
#endif
  EXPECT_THROW(at::empty({int64_t{1} << 60}, at::kByte), c10::OutOfMemoryError);
  EXPECT_EQ(account_->current_bytes(), 0u);
}

TEST_F(LedgerAllocator, LargeBlocksAreReusedWithinTheBound) {
  set_max_cached_block_bytes(0);
  EXPECT_EQ(cached_block_bytes(), 0u);
  set_max_cached_block_bytes(64 << 20);
  at::Tensor t = floats(1 << 21);
  void* first = t.data_ptr();
  t = at::Tensor();
  EXPECT_GE(cached_block_bytes(), 8u << 20);
  EXPECT_EQ(account_->current_bytes(), 0u);
  t = floats((1 << 21) - 1000);  // another size of the same class
  EXPECT_EQ(t.data_ptr(), first);
  EXPECT_EQ(cached_block_bytes(), 0u);
  std::vector<at::Tensor> many;
  for (int i = 0; i < 20; ++i) many.push_back(floats(1 << 21));
  many.clear();
  EXPECT_LE(cached_block_bytes(), 64u << 20);
  EXPECT_GE(cached_block_bytes(), 48u << 20);
  set_max_cached_block_bytes(0);
  EXPECT_EQ(cached_block_bytes(), 0u);
}

}  // namespace
}  // namespace penteract::comm
