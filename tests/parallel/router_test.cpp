// The auxiliary losses of the router against autograd on their formulas, and the bias rule against a brute force.
#include "penteract/parallel/router.h"

#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "penteract/base/rng.h"
#include "penteract/comm/world.h"
#include "penteract/ops/op.h"

namespace penteract::parallel {
namespace {

at::Tensor normal(std::vector<int64_t> shape, const std::string& name) {
  at::Tensor t = at::zeros(shape, at::kDouble);
  std::vector<double> values(t.numel());
  normal_range(philox_key(3, name), 0, t.numel(), values.data());
  std::copy(values.begin(), values.end(), t.data_ptr<double>());
  return t;
}

TEST(Router, AuxiliaryLossesHaveTheGradientsOfTheirFormulas) {
  constexpr int64_t kRows = 2, kTokens = 12, kHidden = 5, kExperts = 6, kChosen = 2;
  constexpr double kBalance = 0.3, kZ = 0.07;
  const at::Tensor x = normal({kTokens, kHidden}, "x").set_requires_grad(true);
  const at::Tensor dweights = normal({kTokens, kChosen}, "dw");
  at::Tensor valid = at::ones({kTokens}, at::kBool);
  valid[7].fill_(false), valid[11].fill_(false);  // pads of row 1
  const Status status = comm::run_rank_threads(1, {}, [&](comm::RankContext& context) -> Status {
    Parameter weight{"gate", normal({kExperts, kHidden}, "w"), at::zeros({kExperts, kHidden}, at::kDouble), true};
    WeightGradQueue queue;
    RoutingStats stats{at::zeros({}, at::kDouble), at::zeros({1, kExperts}, at::kLong)};
    const RouterSpec spec{&weight, nullptr, kChosen, true, 0};
    const RouterLosses losses{kBalance, kZ, context.world, kRows};
    const Routing routing = route(x, spec, valid, {}, losses, &stats, &queue);
    ops::run_backward({routing.weights}, {dweights});

    const at::Tensor y = x.detach().clone().set_requires_grad(true);
    const at::Tensor w = weight.weight.clone().set_requires_grad(true);
    const at::Tensor logits = y.matmul(w.t()), probs = at::softmax(logits, 1);
    const at::Tensor chosen = probs.gather(1, routing.experts);
    at::Tensor aux = at::zeros({}, at::kDouble);
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<int64_t> tokens;
      for (int64_t t = row; t < kTokens; t += kRows)
        if (valid[t].item<bool>()) tokens.push_back(t);
      const auto n = static_cast<double>(tokens.size());
      const at::Tensor index = at::tensor(tokens);
      const at::Tensor counts =
          at::one_hot(routing.experts.index_select(0, index), kExperts).sum(0).sum(0).to(at::kDouble);
      const at::Tensor f = counts * (kExperts / (kChosen * n)), p = probs.index_select(0, index).mean(0);
      aux = aux + kBalance * (f * p).sum();
    }
    const at::Tensor lse = at::logsumexp(logits, {1});
    aux = aux + kZ * (lse * lse * valid.to(at::kDouble)).sum();
    ops::run_backward({(chosen / chosen.sum(1, true) * dweights).sum() + aux}, {at::ones({}, at::kDouble)});
    EXPECT_NEAR(stats.aux_loss.item<double>(), aux.item<double>(), 1e-13);
    EXPECT_LT(at::norm(x.grad() - y.grad()).item<double>(), 1e-13 * at::norm(y.grad()).item<double>());
    EXPECT_LT(at::norm(weight.main_grad - w.grad()).item<double>(), 1e-13 * at::norm(w.grad()).item<double>());
    EXPECT_EQ(stats.expert_counts.sum().item<int64_t>(), 10 * kChosen);
    return {};
  });
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
}

}  // namespace
}  // namespace penteract::parallel
