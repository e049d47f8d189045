#include "penteract/schedule/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace penteract::schedule {
namespace {

using enum ActionKind;
using ::testing::HasSubstr;

std::vector<ActionList> made(const std::string& name, int pp, int m) { return make_schedule(name, pp, 1, m).value(); }

std::string refusal(const std::vector<ActionList>& lists) {
  const auto result = simulate(lists);
  if (result.ok()) return "accepted";
  EXPECT_EQ(result.error().code, ErrorCode::schedule_illegal);
  return result.error().message();
}

TEST(Simulator, OneForwardOneBackwardHasThePeakAndBubbleOfThePaper) {
  for (int pp = 1; pp <= 8; ++pp) {
    for (int m = 1; m <= 17; ++m) {
      for (const double backward_cost : {1.0, 2.0}) {
        const auto result = simulate(made("1f1b", pp, m), {.forward = 1.0, .backward = backward_cost});
        ASSERT_TRUE(result.ok()) << pp << ' ' << m << ' ' << result.error().message();
        for (int p = 0; p < pp; ++p) EXPECT_EQ(result->ranks[p].peak_in_flight, std::min(pp - p, m)) << pp << ' ' << m;
        EXPECT_NEAR(result->makespan, (m + pp - 1) * (1.0 + backward_cost), 1e-9);
        EXPECT_NEAR(result->bubble_fraction, double(pp - 1) / (m + pp - 1), 1e-12);
      }
    }
  }
}

TEST(Simulator, TransfersLengthenTheFillAndTheDrain) {
  const auto result = simulate(made("1f1b", 4, 1), {.forward = 1.0, .backward = 2.0, .weight = 0.0, .transfer = 0.5});
  ASSERT_TRUE(result.ok());
  EXPECT_DOUBLE_EQ(result->makespan, 4 * 3.0 + 6 * 0.5);
}

TEST(Simulator, ForwardOnlyFillsOnce) {
  const auto result = simulate(made("forward_only", 4, 6), {.forward = 1.0});
  ASSERT_TRUE(result.ok());
  EXPECT_DOUBLE_EQ(result->makespan, 6 + 3);
  EXPECT_EQ(result->ranks[0].peak_in_flight, 1);
}

TEST(Simulator, DeferredWeightGradientsHoldTheirActivation) {
  // Two stages; the last defers both weight gradients to the end.
  std::vector<ActionList> lists = made("1f1b", 2, 2);
  for (int m = 0; m < 2; ++m) {
    lists[1].push_back({weight_gradient, m, 1});
    lists[0].push_back({weight_gradient, m, 0});
  }
  const auto result = simulate(lists, {.forward = 1.0, .backward = 1.0, .weight = 1.0});
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(result->ranks[1].peak_in_flight, 2);
  EXPECT_DOUBLE_EQ(result->ranks[1].busy, 6.0);
  lists[1].pop_back();
  EXPECT_THAT(refusal(lists), HasSubstr("ends without weight_gradient of micro-batch 1 on stage 1"));
}

TEST(Simulator, EveryDroppedDoubledOrMovedActionIsCaught) {
  const auto good = made("1f1b", 3, 4);
  for (size_t rank = 0; rank < good.size(); ++rank) {
    for (size_t i = 0; i < good[rank].size(); ++i) {
      auto lists = good;
      lists[rank].erase(lists[rank].begin() + static_cast<long>(i));
      EXPECT_NE(refusal(lists), "accepted") << "dropped " << to_string(good[rank][i]);
      lists = good;
      lists[rank].insert(lists[rank].begin() + static_cast<long>(i), good[rank][i]);
      EXPECT_THAT(refusal(lists), HasSubstr("stands twice")) << to_string(good[rank][i]);
      lists = good;
      lists[rank][i].stage += 1;
      EXPECT_THAT(refusal(lists), HasSubstr(std::to_string((rank + 1) % 3))) << to_string(good[rank][i]);
    }
  }
}

TEST(Simulator, NamesRankAndIndexOfAnActionBeforeWhatItNeeds) {
  auto lists = made("1f1b", 2, 2);
  std::swap(lists[1][0], lists[1][1]);  // forward before its receive
  EXPECT_THAT(refusal(lists), HasSubstr("pipeline rank 1, action 0"));
  EXPECT_THAT(refusal(lists), HasSubstr("before the receive_forward of micro-batch 0"));
}

TEST(Simulator, MessagesInAnotherOrderAreCaught) {
  auto lists = made("forward_only", 2, 2);
  std::swap(lists[1][0], lists[1][2]);
  std::swap(lists[1][1], lists[1][3]);  // micro-batch 1 before 0, each whole in itself
  EXPECT_THAT(refusal(lists), HasSubstr("the message that comes next from rank 0 is micro-batch 0"));
}

TEST(Simulator, DeadlockNamesWhoWaitsForWhat) {
  // Rank 0 wants the gradient of micro-batch 0 before it sends the activation that makes it.
  const std::vector<ActionList> lists = {
      {{forward, 0, 0}, {receive_backward, 0, 0}, {backward, 0, 0}, {send_forward, 0, 0}},
      {{receive_forward, 0, 1}, {forward, 0, 1}, {backward, 0, 1}, {send_backward, 0, 1}}};
  const std::string message = refusal(lists);
  EXPECT_THAT(message, HasSubstr("deadlock"));
  EXPECT_THAT(message, HasSubstr("rank 0 at action 1, receive_backward of micro-batch 0"));
  EXPECT_THAT(message, HasSubstr("rank 1 at action 0, receive_forward of micro-batch 0"));
}

TEST(Simulator, EndsOfThePipelineNeitherReceiveNorSend) {
  auto lists = made("1f1b", 2, 1);
  lists[0].insert(lists[0].begin(), {receive_forward, 0, 0});
  EXPECT_THAT(refusal(lists), HasSubstr("receive_forward of micro-batch 0 on stage 0 has no counterpart"));
  lists = made("1f1b", 2, 1);
  lists[1].push_back({send_forward, 0, 1});
  EXPECT_THAT(refusal(lists), HasSubstr("send_forward of micro-batch 0 on stage 1 has no counterpart"));
}

TEST(Simulator, HostileNumbersAndEmptyListsAreRefused) {
  EXPECT_NE(refusal({}), "accepted");
  EXPECT_NE(refusal({{}, {}}), "accepted");
  EXPECT_THAT(refusal({{{forward, 2'000'000'000, 0}}}), HasSubstr("out of range"));
  EXPECT_THAT(refusal({{{forward, -1, 0}}}), HasSubstr("out of range"));
}

TEST(Simulator, VirtualStagesOfOneRankNeedNoMessages) {
  const std::vector<ActionList> lists = {{{forward, 0, 0}, {forward, 0, 1}, {backward, 0, 1}, {backward, 0, 0}}};
  const auto result = simulate(lists);
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(result->ranks[0].peak_in_flight, 2);
}

}  // namespace
}  // namespace penteract::schedule
