// The layout bugs that other trainers shipped, each on the smallest layouts that show it: against one rank in fp64, two
// steps. Gradients parameter by parameter, the norm from those gradients, the router's losses and the expert load: the
// forward loss is blind to most of these bugs.
#include <gtest/gtest.h>

#include <cmath>

#include "parity/layout_run.h"
#include "parity/small_models.h"
#include "penteract/topology/layout.h"

namespace penteract::parity {
namespace {

enum class Model { experts, biased, dense, tied };

struct Case {
  const char* name;
  const char* layout;
  Model model = Model::experts;
  int micro = 1;
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.layout; }

spec::RunSpec run_of(const Case& c) {
  spec::RunSpec run = c.model == Model::dense ? small_dense() : small_moe();
  run.model.tie_embeddings = c.model == Model::tied;
  if (c.model == Model::biased) {
    run.model.router_bias = true;
    run.router.balance = spec::Balance::bias;
    run.router.bias_rate = 0.05;
  }
  if (run.model.has_experts()) run.router.z_coef = 0.1;
  run.micro_batch = c.micro;
  run.layout = or_throw(topology::complete_layout(or_throw(topology::parse_layout(c.layout)), 0));
  return run;
}

const LayoutRun& one_rank(Model model) {
  static std::map<Model, LayoutRun> runs;
  if (!runs.count(model)) runs[model] = run_layout(run_of({"one", "tp=1", model}), {.steps = 2});
  return runs.at(model);
}

class ShippedLayoutBugsRanks : public testing::TestWithParam<Case> {};

TEST_P(ShippedLayoutBugsRanks, AreNotHere) {
  const LayoutRun& one = one_rank(GetParam().model);
  const LayoutRun many = run_layout(run_of(GetParam()), {.steps = 2});
  ASSERT_EQ(many.losses.size(), 2u);
  const double norm = one.norms[0];
  EXPECT_GT(norm, 0.5) << "the clipping must be at work";
  EXPECT_LT(std::abs(many.norms[0] - norm), 1e-12 * norm);
  double squares = 0;
  for (const auto& [name, grad] : many.grads) squares += std::pow(at::norm(grad).item<double>(), 2);
  EXPECT_LT(std::abs(std::sqrt(squares) - many.norms[0]), 1e-12 * norm) << "the norm is not that of the gradients";
  for (const auto& [name, grad] : one.grads)
    EXPECT_LT(relative_error(many.grads.at(name), grad, 1e-6 * norm), 1e-10) << name;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_LT(std::abs(many.losses[i] - one.losses[i]), 1e-10 * one.losses[i]) << "step " << i + 1;
    EXPECT_LT(std::abs(many.aux_losses[i] - one.aux_losses[i]), 1e-10) << "step " << i + 1;
    EXPECT_EQ(many.expert_counts[i], one.expert_counts[i]) << "step " << i + 1;
  }
  for (const auto& [name, weight] : one.weights)
    EXPECT_LT(relative_error(many.weights.at(name), weight, 1e-6), 1e-9) << name;
}

INSTANTIATE_TEST_SUITE_P(Layouts, ShippedLayoutBugsRanks,
                         testing::Values(Case{"tp2", "tp=2"}, Case{"cp2", "cp=2"}, Case{"dp2", "dp=2"},
                                         Case{"pp3", "pp=3,split=2|1|1"}, Case{"tp2_cp2_ep2", "tp=2,cp=2,ep=2"},
                                         Case{"dp4_ep2_etp2", "dp=4,ep=2,etp=2"}, Case{"tp2_etp2", "tp=2,etp=2"},
                                         Case{"dp2_micro2", "dp=2", Model::experts, 2},
                                         Case{"bias_tp2_dp2", "tp=2,dp=2", Model::biased},
                                         Case{"dense_tp2_nosp", "tp=2,sp=off", Model::dense},
                                         Case{"dense_tp4_nosp", "tp=4,sp=off", Model::dense},
                                         Case{"dense_tp4", "tp=4", Model::dense},
                                         Case{"tied_pp2", "pp=2", Model::tied}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace penteract::parity
