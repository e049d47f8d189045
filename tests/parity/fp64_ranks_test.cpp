// Every layout computes the same run: fp64, against one rank, on per-parameter gradients and the global norm after one
// step and on losses and weights after twenty.
#include <gtest/gtest.h>

#include "parity/layout_run.h"
#include "parity/small_models.h"
#include "penteract/topology/layout.h"

namespace penteract::parity {
namespace {

struct Case {
  const char* layout;
  bool experts = true;
  bool tied = false;
  int micro = 1;
};

void PrintTo(const Case& c, std::ostream* os) {
  *os << c.layout << (c.experts ? "" : " dense") << (c.tied ? " tied" : "");
}

spec::RunSpec run_of(const Case& c) {
  spec::RunSpec run = c.experts ? small_moe() : small_dense();
  run.model.tie_embeddings = c.tied;
  run.micro_batch = c.micro;
  run.layout = or_throw(topology::complete_layout(or_throw(topology::parse_layout(c.layout)), 0));
  return run;
}

// One rank, computed once a model.
const LayoutRun& reference(const Case& c) {
  static std::map<std::pair<bool, bool>, LayoutRun> runs;
  const auto key = std::make_pair(c.experts, c.tied);
  if (!runs.count(key)) runs[key] = run_layout(run_of({"tp=1", c.experts, c.tied}));
  return runs.at(key);
}

class ParityRanks : public testing::TestWithParam<Case> {};

TEST_P(ParityRanks, MatchesOneRank) {
  const LayoutRun& one = reference(GetParam());
  const LayoutRun many = run_layout(run_of(GetParam()));
  ASSERT_EQ(many.losses.size(), one.losses.size());
  const double norm = one.norms[0];
  EXPECT_GT(norm, 0.5) << "the clipping must be at work";
  EXPECT_LT(std::abs(many.norms[0] - norm), 1e-12 * norm);
  for (const auto& [name, grad] : one.grads) {
    EXPECT_GT(at::norm(grad).item<double>(), 0) << name << " has no gradient: the test would be blind to it";
    EXPECT_LT(relative_error(many.grads.at(name), grad, 1e-6 * norm), 1e-10) << name;
  }
  for (size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_LT(std::abs(many.losses[i] - one.losses[i]), 1e-8 * one.losses[i]) << "step " << i + 1;
    EXPECT_LT(std::abs(many.aux_losses[i] - one.aux_losses[i]), 1e-8) << "step " << i + 1;
  }
  EXPECT_EQ(many.eval_tokens, one.eval_tokens);
  EXPECT_LT(std::abs(many.eval_loss - one.eval_loss), 1e-8 * one.eval_loss);
  for (const auto& [name, weight] : one.weights)
    EXPECT_LT(relative_error(many.weights.at(name), weight, 1e-6), 1e-8) << name;
}

// Initial weights depend on seed and parameter alone: equal bits in every layout (userlog E8).
TEST(InitialWeightsRanks, AreBitEqualInEveryLayout) {
  const auto one = run_layout(run_of({"tp=1"}), {.steps = 0}).weights;
  for (const char* layout : {"tp=4", "pp=4", "dp=3,ep=1", "tp=2,pp=2,cp=2,dp=2,ep=4", "dp=4,ep=2,etp=2"}) {
    auto run = run_of({"tp=1"});
    run.layout = or_throw(topology::complete_layout(or_throw(topology::parse_layout(layout)), 0));
    run.global_batch = 4 * run.layout.dp;
    for (const auto& [name, weight] : run_layout(run, {.steps = 0}).weights)
      EXPECT_TRUE(weight.equal(one.at(name))) << layout << " " << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, ParityRanks,
    testing::Values(Case{"dp=2"}, Case{"dp=4"}, Case{"tp=2"}, Case{"tp=4"}, Case{"cp=2"}, Case{"cp=4"}, Case{"pp=2"},
                    Case{"pp=4"}, Case{"pp=3,split=2|1|1"}, Case{"dp=2,ep=2"}, Case{"cp=2,ep=2"}, Case{"tp=2,ep=2"},
                    Case{"tp=2,etp=2"}, Case{"dp=4,ep=4"}, Case{"dp=4,ep=2,etp=2"}, Case{"tp=2,cp=2,ep=2"},
                    Case{"pp=2,cp=2,ep=2"}, Case{"dp=2", true, false, 2}, Case{"tp=2,pp=2,cp=2,dp=2,ep=4"},
                    Case{"tp=2,pp=2,cp=2,dp=2,ep=2,etp=2"}, Case{"tp=4,pp=2,cp=2,ep=8"}, Case{"tp=2,sp=off", false},
                    Case{"tp=4,sp=off", false}, Case{"tp=2", false}, Case{"tp=2,cp=2,sp=off", false},
                    Case{"tp=2,dp=2,pp=2", false}, Case{"pp=2", true, true}, Case{"tp=2,pp=4,dp=2,ep=2", true, true},
                    Case{"tp=2,cp=2,pp=2,sp=off", false, true}));

}  // namespace
}  // namespace penteract::parity
