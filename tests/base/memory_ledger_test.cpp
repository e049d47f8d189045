#include "penteract/base/memory_ledger.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace penteract {
namespace {

TEST(MemoryAccount, CurrentPeakAndKinds) {
  MemoryAccount account;
  EXPECT_TRUE(account.charge(MemoryKind::weights, 100));
  EXPECT_TRUE(account.charge(MemoryKind::activations, 50));
  account.credit(MemoryKind::activations, 50);
  EXPECT_EQ(account.current_bytes(), 100u);
  EXPECT_EQ(account.peak_bytes(), 150u);
  EXPECT_EQ(account.current_bytes(MemoryKind::weights), 100u);
  EXPECT_EQ(account.current_bytes(MemoryKind::activations), 0u);
  account.reset_peak();
  EXPECT_EQ(account.peak_bytes(), 100u);
}

TEST(MemoryAccount, ARefusedChargeChangesNothing) {
  MemoryAccount account;
  account.set_limit_bytes(100);
  EXPECT_TRUE(account.charge(MemoryKind::gradients, 100));  // up to the limit
  EXPECT_FALSE(account.charge(MemoryKind::gradients, 1));
  EXPECT_EQ(account.current_bytes(), 100u);
  EXPECT_EQ(account.current_bytes(MemoryKind::gradients), 100u);
  EXPECT_EQ(account.peak_bytes(), 100u);
}

TEST(MemoryAccount, AnInjectedFailureHitsTheNthCharge) {
  MemoryAccount account;
  account.fail_charge_in(2);
  EXPECT_TRUE(account.charge(MemoryKind::workspace, 1));
  EXPECT_FALSE(account.charge(MemoryKind::workspace, 1));
  EXPECT_TRUE(account.charge(MemoryKind::workspace, 1));
  EXPECT_EQ(account.current_bytes(), 2u);
}

TEST(MemoryAccount, ChargesOfManyThreadsAddUp) {
  MemoryAccount account;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) {
          account.charge(MemoryKind::optimizer, 3);
          account.credit(MemoryKind::optimizer, 2);
        }
      });
    }
  }
  EXPECT_EQ(account.current_bytes(), 4000u);
  EXPECT_EQ(account.current_bytes(MemoryKind::optimizer), 4000u);
  EXPECT_GE(account.peak_bytes(), 4000u);
}

TEST(MemoryKindScope, EndsWithTheScopeAndIsTheThreads) {
  EXPECT_EQ(current_memory_kind(), MemoryKind::activations);
  {
    const MemoryKindScope outer(MemoryKind::weights);
    {
      const MemoryKindScope inner(MemoryKind::communication);
      EXPECT_EQ(current_memory_kind(), MemoryKind::communication);
    }
    EXPECT_EQ(current_memory_kind(), MemoryKind::weights);
    std::jthread([] { EXPECT_EQ(current_memory_kind(), MemoryKind::activations); });
  }
  EXPECT_EQ(current_memory_kind(), MemoryKind::activations);
  EXPECT_EQ(memory_kind_name(MemoryKind::workspace), "workspace");
}

TEST(CurrentAccount, IsTheThreads) {
  MemoryAccount account;
  set_current_account(&account);
  std::jthread([] { EXPECT_EQ(current_account(), nullptr); });
  EXPECT_EQ(current_account(), &account);
  set_current_account(nullptr);
}

}  // namespace
}  // namespace penteract
