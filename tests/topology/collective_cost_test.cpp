#include "penteract/topology/collective_cost.h"

#include <gtest/gtest.h>

#include "penteract/base/check.h"

namespace penteract::topology {
namespace {

TEST(CollectiveCost, AGroupOfOneCostsNothing) {
  for (Collective op : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                        Collective::all_to_all, Collective::broadcast, Collective::send, Collective::barrier}) {
    EXPECT_EQ(collective_cost(op, 1, 1 << 20), CollectiveCost{}) << collective_name(op);
  }
  EXPECT_EQ(exchange_cost(1, 100), CollectiveCost{});
}

TEST(CollectiveCost, TheBytesOfARing) {
  const int64_t bytes = 1 << 20;
  EXPECT_EQ(collective_cost(Collective::all_reduce, 4, bytes), (CollectiveCost{2 * 3 * bytes / 4, 6}));
  EXPECT_EQ(collective_cost(Collective::reduce_scatter, 4, bytes), (CollectiveCost{3 * bytes / 4, 3}));
  EXPECT_EQ(collective_cost(Collective::all_gather, 4, bytes), (CollectiveCost{3 * bytes / 4, 3}));
  EXPECT_EQ(collective_cost(Collective::all_to_all, 4, bytes), (CollectiveCost{3 * bytes / 4, 3}));
  EXPECT_EQ(collective_cost(Collective::broadcast, 4, bytes), (CollectiveCost{3 * bytes, 3}));
  EXPECT_EQ(collective_cost(Collective::send, 4, bytes), (CollectiveCost{bytes, 1}));
  EXPECT_EQ(collective_cost(Collective::barrier, 4, 0), (CollectiveCost{0, 3}));
}

TEST(CollectiveCost, AnAllReduceIsAReduceScatterAndAnAllGather) {
  for (int64_t bytes : {kDirectReduceBytes + 1, int64_t{1} << 30}) {
    const CollectiveCost scatter = collective_cost(Collective::reduce_scatter, 7, bytes);
    const CollectiveCost gather = collective_cost(Collective::all_gather, 7, bytes);
    EXPECT_EQ(collective_cost(Collective::all_reduce, 7, bytes),
              (CollectiveCost{scatter.sent_bytes + gather.sent_bytes, scatter.num_steps + gather.num_steps}));
  }
}

TEST(CollectiveCost, ASmallAllReduceIsOneExchange) {
  EXPECT_EQ(collective_cost(Collective::all_reduce, 16, kDirectReduceBytes),
            (CollectiveCost{15 * kDirectReduceBytes, 15}));
}

TEST(CollectiveCost, APartThatDoesNotDivideCountsAsTheLargest) {
  EXPECT_EQ(collective_cost(Collective::all_gather, 4, 10).sent_bytes, 3 * 3);
}

TEST(CollectiveCost, SixteenThousandRanksDoNotOverflow) {
  const int64_t bytes = int64_t{1} << 42;
  EXPECT_EQ(collective_cost(Collective::all_reduce, 16384, bytes).sent_bytes, 2 * 16383 * (bytes / 16384));
}

TEST(CollectiveCost, RefusesWhatCannotBe) {
  EXPECT_THROW(collective_cost(Collective::send, 0, 1), CheckFailure);
  EXPECT_THROW(collective_cost(Collective::send, 2, -1), CheckFailure);
}

}  // namespace
}  // namespace penteract::topology
