#include <gtest/gtest.h>

#include "comm/values.h"
#include "penteract/comm/world.h"
#include "support/run_ranks.h"

namespace penteract::comm {
namespace {

using penteract::testing::run_ranks;
using testing::same_bits;
using testing::serial_sum;
using testing::values;

TEST(HandlesRanks, SeveralCollectivesInFlight) {
  for (int n : {1, 2, 3, 8}) {
    run_ranks(n, [n](RankContext& context) {
      for (int64_t count : {7, 6000}) {
        at::Tensor t = values(context.rank, {count}, at::kFloat);
        const at::Tensor in = values(context.rank, {count * n}, at::kFloat);
        at::Tensor part = at::empty({count}, at::kFloat), gathered = at::empty({count * n}, at::kFloat);
        Handle reduce = context.world.all_reduce_sum_async(t);
        Handle scatter = context.world.reduce_scatter_into_async(in, part);
        Handle gather = context.world.all_gather_into_async(values(context.rank, {count}, at::kFloat), gathered);
        context.world.barrier();
        EXPECT_TRUE(reduce.done());
        reduce.wait();
        scatter.wait();
        gather.wait();
        gather.wait();  // no-op
        EXPECT_TRUE(same_bits(t, serial_sum(n, {count}, at::kFloat)));
        EXPECT_TRUE(same_bits(part, serial_sum(n, {count * n}, at::kFloat).narrow(0, count * context.rank, count)));
        for (int i = 0; i < n; ++i) {
          EXPECT_TRUE(same_bits(gathered.narrow(0, count * i, count), values(i, {count}, at::kFloat)));
        }
      }
    });
  }
}

TEST(HandlesRanks, ADestroyedHandleHasWaited) {
  run_ranks(3, [](RankContext& context) {
    at::Tensor t = values(context.rank, {5000}, at::kDouble), other = values(context.rank, {5000}, at::kDouble);
    { Handle handle = context.world.all_reduce_sum_async(t); }
    EXPECT_TRUE(same_bits(t, serial_sum(3, {5000}, at::kDouble)));
    Handle handle = context.world.all_reduce_sum_async(other);
    handle = Handle();
    EXPECT_TRUE(same_bits(other, serial_sum(3, {5000}, at::kDouble)));
  });
}

TEST(HandlesRanks, MessagesMeetByChannelAndNumber) {
  run_ranks(4, [](RankContext& context) {
    const int next = (context.rank + 1) % 4, before = (context.rank + 3) % 4;
    for (int64_t count : {0, 3, 5000}) {
      // Two channels, two messages each, received against the order of sending.
      std::vector<Handle> sends, receives;
      std::vector<at::Tensor> got;
      for (int i = 0; i < 4; ++i) {
        sends.push_back(context.world.send(values(context.rank * 10 + i, {count}, at::kFloat), next, i % 2));
      }
      for (int i : {1, 0, 3, 2}) {
        got.push_back(at::empty({count}, at::kFloat));
        receives.push_back(context.world.recv_into(got.back(), before, i % 2));
      }
      for (int i : {3, 1, 2, 0}) receives[i].wait();
      for (Handle& send : sends) send.wait();
      int k = 0;
      for (int i : {1, 0, 3, 2}) EXPECT_TRUE(same_bits(got[k++], values(before * 10 + i, {count}, at::kFloat))) << i;
    }
  });
}

TEST(HandlesRanks, ASendOwnsItsTensorAndEndsWhenTaken) {
  run_ranks(2, [](RankContext& context) {
    if (context.rank == 0) {
      Handle send = context.world.send(values(5, {9000}, at::kFloat), 1, 0);
      EXPECT_FALSE(send.done());
      context.world.barrier();
      send.wait();
    } else {
      at::Tensor t = at::empty({9000}, at::kFloat);
      Handle receive = context.world.recv_into(t, 0, 0);
      context.world.barrier();
      EXPECT_TRUE(receive.done());
      receive.wait();
      EXPECT_TRUE(same_bits(t, values(5, {9000}, at::kFloat)));
    }
  });
}

TEST(HandlesRanks, ARankMaySendToItself) {
  run_ranks(1, [](RankContext& context) {
    at::Tensor t = at::empty({9000}, at::kFloat);
    Handle send = context.world.send(values(5, {9000}, at::kFloat), 0, 3);
    context.world.recv_into(t, 0, 3).wait();
    send.wait();
    EXPECT_TRUE(same_bits(t, values(5, {9000}, at::kFloat)));
  });
}

}  // namespace
}  // namespace penteract::comm
