#include <gtest/gtest.h>

#include "comm/values.h"
#include "penteract/comm/world.h"
#include "support/run_ranks.h"

namespace penteract::comm {
namespace {

using testing::values;

void make_calls(RankContext& context) {
  const int n = context.num_ranks;
  const std::vector<int64_t> threes(n, 3);
  at::Tensor t = values(context.rank, {5000}, at::kFloat), small = values(context.rank, {10}, at::kFloat);
  context.world.all_reduce_sum(t);
  context.world.all_reduce_sum(small);
  context.world.all_gather(context.world.reduce_scatter_sum(values(context.rank, {n * 3}, at::kDouble)));
  context.world.all_to_all_v(values(context.rank, {n * 3, 2}, at::kBFloat16), threes, threes);
  context.world.broadcast(t, 0);
  context.world.barrier();
}

// A fake rank counts what the thread rank of the same place counts: plans from one hold for the other.
TEST(TrafficRanks, FakeAndThreadsCountAlike) {
  const int n = 4;
  std::vector<std::vector<Traffic>> counted(n);
  penteract::testing::run_ranks(n, [&](RankContext& context) {
    make_calls(context);
    counted[context.rank] = context.traffic();
  });
  for (int rank = 0; rank < n; ++rank) {
    std::vector<Traffic> faked;
    const Status status = run_fake_rank(rank, n, {}, [&](RankContext& context) -> Status {
      make_calls(context);
      faked = context.traffic();
      return {};
    });
    ASSERT_TRUE(status.ok()) << status.error().message();
    ASSERT_EQ(faked.size(), counted[rank].size());
    EXPECT_EQ(faked.size(), 6u);
    for (size_t i = 0; i < faked.size(); ++i) {
      EXPECT_EQ(faked[i].operation, counted[rank][i].operation);
      EXPECT_EQ(faked[i].sent_bytes, counted[rank][i].sent_bytes) << faked[i].operation;
      EXPECT_EQ(faked[i].num_calls, counted[rank][i].num_calls);
    }
  }
}

TEST(TrafficRanks, EachRankHasItsOwnAccount) {
  std::vector<uint64_t> peaks(3);
  std::vector<at::Tensor> kept(3);
  penteract::testing::run_ranks(3, [&](RankContext& context) {
    MemoryKindScope scope(MemoryKind::weights);
    kept[context.rank] = at::empty({(context.rank + 1) * 1000}, at::kFloat);
    context.world.barrier();
    EXPECT_EQ(context.memory.current_bytes(MemoryKind::weights), static_cast<uint64_t>(context.rank + 1) * 4000);
    peaks[context.rank] = context.memory.peak_bytes();
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(peaks[rank], static_cast<uint64_t>(rank + 1) * 4000);
  kept.clear();  // after their world: the accounts are still there
}

TEST(TrafficRanks, MemoryLimitHoldsForEachRank) {
  WorldOptions options = penteract::testing::test_world_options();
  options.memory_limit_bytes = 1 << 20;
  const Status status = run_rank_threads(3, options, [](RankContext& context) -> Status {
    at::Tensor t = at::empty({context.rank == 1 ? 1 << 19 : 1000}, at::kFloat);
    context.world.barrier();
    return {};
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(status.error().culprit, "rank 1");
}

}  // namespace
}  // namespace penteract::comm
