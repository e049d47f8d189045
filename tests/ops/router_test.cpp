#include "penteract/ops/router.h"

#include <gtest/gtest.h>

#include <limits>

#include "ops/reference.h"

namespace penteract::ops {
namespace {

using namespace test;

class RouterTest : public ::testing::TestWithParam<std::tuple<at::ScalarType, bool>> {};

TEST_P(RouterTest, AgreesWithAutogradOfTheReference) {
  const auto [dtype, norm] = GetParam();
  const int64_t tokens = 33, num_experts = 29, k = 3;
  const auto logits = normal({tokens, num_experts}, "logits", dtype).mul(2);
  const auto choice = router_choose(logits, k, norm);
  EXPECT_TRUE(choice.experts.equal(std::get<1>(logits.topk(k))));

  const auto x = leaf(logits);
  const auto probs = x.softmax(1);
  auto weights = probs.gather(1, choice.experts);
  if (norm) weights = weights / weights.sum(1, true);
  const double bound = dtype == at::kDouble ? kDoubleBound : 64 * kFloatUnit;
  EXPECT_LE(relative_error(choice.probs, probs), bound);
  EXPECT_LE(relative_error(choice.weights, weights), bound);

  const auto dweights = normal({tokens, k}, "dw", dtype);
  for (const at::Tensor& extra :
       {at::Tensor(), normal({num_experts}, "extra", dtype), normal({tokens, num_experts}, "extra", dtype)}) {
    auto total = (weights * dweights.to(at::kDouble)).sum();
    if (extra.defined()) total = total + (probs * extra.to(at::kDouble)).sum();
    const auto expected = torch::autograd::grad({total}, {x}, {}, /*retain_graph=*/true)[0];
    EXPECT_LE(relative_error(router_backward(dweights, extra, choice, norm), expected), bound);
  }
  const auto extra = normal({tokens, num_experts}, "extra", dtype);
  const auto expected = grads_of(probs, {x}, extra)[0];
  EXPECT_LE(relative_error(router_backward({}, extra, choice, norm), expected), bound);
}

INSTANTIATE_TEST_SUITE_P(Types, RouterTest,
                         ::testing::Combine(::testing::Values(at::kDouble, at::kFloat), ::testing::Bool()));

TEST(Router, EqualProbabilitiesGoToTheLowestExpert) {
  auto logits = at::zeros({2, 9}, at::TensorOptions().dtype(at::kFloat));
  logits.select(0, 1).select(0, 6).fill_(1);
  logits.select(0, 1).select(0, 2).fill_(1);
  const auto choice = router_choose(logits, 3, true);
  const auto* experts = choice.experts.data_ptr<int64_t>();
  const std::vector<int64_t> expected = {0, 1, 2, 2, 6, 0};
  EXPECT_EQ(std::vector<int64_t>(experts, experts + 6), expected);
}

TEST(Router, ReplayTakesTheGivenExperts) {
  const auto logits = normal({4, 6}, "logits");
  const auto first = router_choose(logits, 2, false);
  const auto replay = (first.experts + 1).remainder(6);
  const auto again = router_choose(logits, 2, false, {}, replay);
  EXPECT_TRUE(again.experts.equal(replay));
  EXPECT_TRUE(again.weights.equal(first.probs.gather(1, replay)));
  EXPECT_THROW(router_choose(logits, 2, false, {}, replay + 6), CheckFailure);
}

TEST(Router, ABiasMovesTheChoiceAndNoWeight) {
  const auto logits = normal({5, 6}, "logits");
  const auto plain = router_choose(logits, 6, false);
  auto bias = normal({6}, "bias");
  const auto choice = router_choose(logits, 2, true, bias);
  const auto expected = std::get<1>((plain.probs + bias).topk(2, 1));
  EXPECT_TRUE(choice.experts.equal(expected));
  EXPECT_FALSE(choice.experts.equal(router_choose(logits, 2, true).experts)) << "the bias must matter here";
  const auto chosen = plain.probs.gather(1, expected);
  EXPECT_LE(relative_error(choice.weights, chosen / chosen.sum(1, true)), 1e-15);
}

TEST(Router, NaNStillChoosesDifferentExperts) {
  auto logits = normal({1, 4}, "logits");
  logits.fill_(std::numeric_limits<double>::quiet_NaN());
  const auto choice = router_choose(logits, 4, true);
  EXPECT_TRUE(choice.weights.isnan().all().item<bool>());
  const auto* experts = choice.experts.data_ptr<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(experts, experts + 4), (std::vector<int64_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace penteract::ops
