#include "penteract/parallel/parameter.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace penteract::parallel {
namespace {

Parameter parameter(bool contributes) {
  Parameter p;
  p.main_grad = at::zeros({1});
  p.contributes = contributes;
  return p;
}

TEST(WeightGradQueue, DeferredGradientsWaitForDrainAndKeepTheirOrder) {
  const Parameter p = parameter(true);
  WeightGradQueue queue;
  queue.push(p, [](at::Tensor g) { g.add_(1); });
  EXPECT_EQ(p.main_grad.item<float>(), 1);
  queue.set_deferred(true);
  queue.push(p, [](at::Tensor g) { g.mul_(10); });
  queue.push(p, [](at::Tensor g) { g.add_(5); });
  EXPECT_EQ(p.main_grad.item<float>(), 1);
  queue.drain();
  EXPECT_EQ(p.main_grad.item<float>(), 15);
  queue.drain();
  EXPECT_EQ(p.main_grad.item<float>(), 15);
}

TEST(WeightGradQueue, AParameterThatAnotherRankCountsIsLeftAlone) {
  const Parameter p = parameter(false);
  WeightGradQueue queue;
  queue.push(p, [](at::Tensor g) { g.add_(1); });
  EXPECT_EQ(p.main_grad.item<float>(), 0);
}

}  // namespace
}  // namespace penteract::parallel
