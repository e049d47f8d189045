#include "penteract/comm/fake_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "comm/values.h"
#include "penteract/base/check.h"
#include "penteract/comm/world.h"
#include "penteract/topology/collective_cost.h"

namespace penteract::comm {
namespace {

using testing::same_bits;
using testing::values;
using topology::Collective;
using topology::collective_cost;

Traffic find(const std::vector<Traffic>& all, const std::string& group, const std::string& operation) {
  for (const Traffic& traffic : all) {
    if (traffic.group == group && traffic.operation == operation) return traffic;
  }
  ADD_FAILURE() << "no traffic of " << operation << " in " << group;
  return {};
}

TEST(FakeTransport, OneRankOfSixteenThousand) {
  const int n = 16384, rank = 9000;
  const Status status = run_fake_rank(rank, n, {}, [&](RankContext& context) -> Status {
    EXPECT_EQ(context.world.size(), n);
    EXPECT_EQ(context.world.index(), rank);
    EXPECT_EQ(current_rank(), rank);
    std::vector<int> stride;
    for (int r = rank % 8; r < n; r += 8) stride.push_back(r);
    const Group dp = context.make_group(stride, "dp");
    EXPECT_EQ(dp.size(), 2048);
    at::Tensor t = values(0, {4, 1000}, at::kFloat);
    dp.all_reduce_sum(t, {.tag = "gradients"});
    EXPECT_TRUE(same_bits(t, values(0, {4, 1000}, at::kFloat)));
    const at::Tensor gathered = dp.all_gather(values(3, {2, 3}, at::kBFloat16));
    EXPECT_EQ(gathered.sizes(), (std::vector<int64_t>{4096, 3}));
    EXPECT_TRUE(same_bits(gathered.narrow(0, 2 * dp.index(), 2), values(3, {2, 3}, at::kBFloat16)));
    EXPECT_EQ(static_cast<float>(gathered.data_ptr<c10::BFloat16>()[0]), 0.f);
    EXPECT_EQ(dp.reduce_scatter_sum(gathered).sizes(), (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(dp.all_gather_int64({5, 6}).size(), 4096u);
    EXPECT_EQ(dp.all_gather_int64({5, 6})[1], 6);
    context.world.barrier();
    at::Tensor received = values(1, {10}, at::kFloat);
    Handle send = context.world.send(received, 3, 0);
    context.world.recv_into(received, 3, 0).wait();
    EXPECT_EQ(received.data_ptr<float>()[9], 0.f);

    const std::vector<Traffic> traffic = context.traffic();
    const Traffic reduced = find(traffic, "dp", "all_reduce_sum");
    const auto cost = collective_cost(Collective::all_reduce, 2048, 16000);
    EXPECT_EQ(reduced.num_calls, 1);
    EXPECT_EQ(reduced.payload_bytes, 16000);
    EXPECT_EQ(reduced.sent_bytes, cost.sent_bytes);
    EXPECT_EQ(reduced.num_steps, cost.num_steps);
    EXPECT_EQ(find(traffic, "dp", "reduce_scatter_sum").sent_bytes,
              collective_cost(Collective::reduce_scatter, 2048, 2048 * 12).sent_bytes);
    // One tensor of 2048·12 bytes, two lists of 2048·16.
    EXPECT_EQ(find(traffic, "dp", "all_gather").sent_bytes, 2047 * (12 + 16 + 16));
    EXPECT_EQ(find(traffic, "dp", "all_gather").num_calls, 3);
    EXPECT_EQ(find(traffic, "world", "send").sent_bytes, 40);
    EXPECT_EQ(find(traffic, "world", "receive").sent_bytes, 0);
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.error().message();
}

TEST(FakeTransport, UnequalPartsCountWhatLeavesTheRank) {
  const Status status = run_fake_rank(1, 3, {}, [](RankContext& context) -> Status {
    const at::Tensor in = values(0, {6, 2}, at::kDouble);
    EXPECT_EQ(context.world.all_to_all_v(in, {1, 2, 3}, {4, 5, 6}).sizes(), (std::vector<int64_t>{15, 2}));
    EXPECT_EQ(context.world.all_gather_v(in, {1, 6, 3}).size(0), 10);
    EXPECT_EQ(context.world.reduce_scatter_v(in, {1, 2, 3}).size(0), 2);
    at::Tensor t = values(0, {4}, at::kFloat);
    context.world.broadcast(t, 1);
    EXPECT_TRUE(same_bits(t, values(0, {4}, at::kFloat)));
    const std::vector<Traffic> traffic = context.traffic();
    EXPECT_EQ(find(traffic, "world", "all_to_all_v").sent_bytes, (1 + 3) * 16);
    EXPECT_EQ(find(traffic, "world", "all_gather_v").sent_bytes, 2 * 6 * 16);
    EXPECT_EQ(find(traffic, "world", "reduce_scatter_v").sent_bytes, (1 + 3) * 16);
    EXPECT_EQ(find(traffic, "world", "broadcast").sent_bytes, 2 * 16);
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.error().message();
}

TEST(FakeTransport, AFailureIsReportedLikeAnyOther) {
  const Status status = run_fake_rank(5, 8, {}, [](RankContext&) -> Status { throw std::runtime_error("lost"); });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().culprit, "rank 5");
}

}  // namespace
}  // namespace penteract::comm
