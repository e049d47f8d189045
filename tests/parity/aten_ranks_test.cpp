// The whole model on plain ATen calls against the kernels, in double precision, on one rank and over every axis.
#include <gtest/gtest.h>

#include "parity/layout_run.h"
#include "parity/small_models.h"
#include "penteract/topology/layout.h"

namespace penteract::parity {
namespace {

class AtenRanks : public testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(AtenRanks, GivesTheGradientsOfTheKernels) {
  const auto& [layout, experts] = GetParam();
  spec::RunSpec run = experts ? small_moe() : small_dense();
  run.router.z_coef = experts ? 0.02 : 0;
  run.layout = or_throw(topology::complete_layout(or_throw(topology::parse_layout(layout)), 0));
  RunOptions options;
  options.steps = 3;
  const LayoutRun kernels = run_layout(run, options);
  options.plain_aten = true;
  const LayoutRun aten = run_layout(run, options);
  ASSERT_EQ(aten.losses.size(), kernels.losses.size());
  bool equal_bits = true;
  for (const auto& [name, grad] : kernels.grads) {
    EXPECT_GT(at::norm(grad).item<double>(), 0) << name << " has no gradient: the test would be blind to it";
    EXPECT_LT(relative_error(aten.grads.at(name), grad, 1e-6 * kernels.norms[0]), 1e-10) << name;
    equal_bits = equal_bits && grad.equal(aten.grads.at(name));
  }
  EXPECT_FALSE(equal_bits) << "the kernels ran twice";
  for (const auto& [layer, routes] : kernels.routes) EXPECT_TRUE(aten.routes.at(layer).equal(routes)) << layer;
  EXPECT_EQ(aten.expert_counts, kernels.expert_counts);
  for (size_t i = 0; i < kernels.losses.size(); ++i) {
    EXPECT_LT(std::abs(aten.losses[i] - kernels.losses[i]), 1e-10 * kernels.losses[i]) << "step " << i + 1;
    EXPECT_LT(std::abs(aten.aux_losses[i] - kernels.aux_losses[i]), 1e-10) << "step " << i + 1;
  }
  for (const auto& [name, weight] : kernels.weights)
    EXPECT_LT(relative_error(aten.weights.at(name), weight, 1e-6), 1e-8) << name;
  EXPECT_LT(std::abs(aten.eval_loss - kernels.eval_loss), 1e-8 * kernels.eval_loss);
}

INSTANTIATE_TEST_SUITE_P(Experts, AtenRanks,
                         testing::Combine(testing::Values("tp=1", "tp=2,pp=2,cp=2,dp=2,ep=4"), testing::Values(true)));
INSTANTIATE_TEST_SUITE_P(Dense, AtenRanks,
                         testing::Combine(testing::Values("tp=1", "tp=2,pp=2,cp=2,dp=2,sp=off"),
                                          testing::Values(false)));

}  // namespace
}  // namespace penteract::parity
