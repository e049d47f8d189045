#include "penteract/schedule/action.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace penteract::schedule {
namespace {

using enum ActionKind;
using ::testing::HasSubstr;

std::vector<int> micro_batches(const ActionList& list, ActionKind kind) {
  std::vector<int> found;
  for (const Action& a : list) {
    if (a.kind == kind) found.push_back(a.micro_batch);
  }
  return found;
}

TEST(Action, TwoStagesThreeMicroBatchesInFull) {
  const auto lists = make_schedule("1f1b", 2, 1, 3);
  ASSERT_TRUE(lists.ok());
  const ActionList first = {{forward, 0, 0},      {send_forward, 0, 0},     {forward, 1, 0},
                            {send_forward, 1, 0}, {receive_backward, 0, 0}, {backward, 0, 0},
                            {forward, 2, 0},      {send_forward, 2, 0},     {receive_backward, 1, 0},
                            {backward, 1, 0},     {receive_backward, 2, 0}, {backward, 2, 0}};
  const ActionList last = {{receive_forward, 0, 1}, {forward, 0, 1}, {backward, 0, 1}, {send_backward, 0, 1},
                           {receive_forward, 1, 1}, {forward, 1, 1}, {backward, 1, 1}, {send_backward, 1, 1},
                           {receive_forward, 2, 1}, {forward, 2, 1}, {backward, 2, 1}, {send_backward, 2, 1}};
  EXPECT_EQ((*lists)[0], first);
  EXPECT_EQ((*lists)[1], last);
}

TEST(Action, WarmupIsTheDistanceToTheEndAndTheEndsLackMessages) {
  for (int pp = 1; pp <= 8; ++pp) {
    for (int m = 1; m <= 17; ++m) {
      const auto lists = make_schedule("1f1b", pp, 1, m);
      ASSERT_TRUE(lists.ok());
      ASSERT_EQ(static_cast<int>(lists->size()), pp);
      for (int p = 0; p < pp; ++p) {
        const ActionList& list = (*lists)[p];
        int before = 0;
        for (const Action& a : list) {
          EXPECT_EQ(a.stage, p);
          if (a.kind == backward) break;
          before += a.kind == forward;
        }
        // The steady phase starts with a forward, so one more stands before the first backward, where there is one.
        EXPECT_EQ(before, std::min(pp - p - 1, m) + (pp - p - 1 < m ? 1 : 0)) << pp << ' ' << p << ' ' << m;
        const size_t all = static_cast<size_t>(m);
        EXPECT_EQ(micro_batches(list, forward).size(), all);
        EXPECT_EQ(micro_batches(list, receive_forward).size(), p > 0 ? all : 0);
        EXPECT_EQ(micro_batches(list, send_backward).size(), p > 0 ? all : 0);
        EXPECT_EQ(micro_batches(list, send_forward).size(), p + 1 < pp ? all : 0);
        EXPECT_EQ(micro_batches(list, receive_backward).size(), p + 1 < pp ? all : 0);
        EXPECT_TRUE(std::ranges::is_sorted(micro_batches(list, backward)));
      }
    }
  }
}

TEST(Action, ForwardOnlyHasNoBackward) {
  const auto lists = make_schedule("forward_only", 3, 1, 2);
  ASSERT_TRUE(lists.ok());
  const ActionList middle = {{receive_forward, 0, 1}, {forward, 0, 1}, {send_forward, 0, 1},
                             {receive_forward, 1, 1}, {forward, 1, 1}, {send_forward, 1, 1}};
  EXPECT_EQ((*lists)[1], middle);
}

TEST(Action, RefusesWhatItDoesNotKnow) {
  const auto unknown = make_schedule("1f2b", 2, 1, 2);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::schedule_illegal);
  EXPECT_THAT(unknown.error().message(), HasSubstr("did you mean 1f1b"));
  EXPECT_THAT(make_schedule("zero-bubble", 2, 1, 2).error().message(), HasSubstr("1f1b and forward_only"));
  EXPECT_THAT(make_schedule("1f1b", 2, 2, 2).error().message(), HasSubstr("vpp = 1"));
  EXPECT_FALSE(make_schedule("1f1b", 0, 1, 2).ok());
  EXPECT_FALSE(make_schedule("forward_only", 1, 1, 0).ok());
}

}  // namespace
}  // namespace penteract::schedule
