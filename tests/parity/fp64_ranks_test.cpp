// Every layout computes the same run: fp64, against one rank, on per-parameter gradients and the global norm after one
// step and on losses, expert counts and weights over twenty.
#include "parity/matrix.h"

namespace penteract::parity {
namespace {

class ParityRanks : public testing::TestWithParam<Case> {
 protected:
  static void TearDownTestSuite() { tally_.print("fp64"); }
  static inline Tally tally_;
};

TEST_P(ParityRanks, MatchesOneRank) {
  const Case& c = GetParam();
  const Reference& ref = reference(c);
  const LayoutRun& one = ref.fp64;
  const spec::RunSpec run = with_precision(run_of(c), spec::Recipe::fp64, ref.seed);
  const LayoutRun many = run_layout(run);
  ASSERT_EQ(many.losses.size(), one.losses.size());
  const std::string on = testing::PrintToString(c) + ", ";
  const double norm = one.norms[0];
  EXPECT_GT(norm, run.optimizer.clip_grad_norm) << "the clipping must be at work";
  tally_.check("norm", std::abs(many.norms[0] - norm) / norm, 1e-12, on + "step 1");
  for (size_t i = 0; i < one.losses.size(); ++i) {
    const std::string step = on + "step " + std::to_string(i + 1);
    tally_.check("loss", std::abs(many.losses[i] - one.losses[i]) / one.losses[i], 1e-8, step);
    tally_.check("auxiliary loss", std::abs(many.aux_losses[i] - one.aux_losses[i]), 1e-8, step);
    EXPECT_EQ(many.expert_counts[i], one.expert_counts[i]) << step;
  }
  EXPECT_EQ(many.eval_tokens, one.eval_tokens);
  tally_.check("evaluation loss", std::abs(many.eval_loss - one.eval_loss) / one.eval_loss, 1e-8, on + "step 20");
  for (const auto& param : spec::param_table(run.model)) {
    const at::Tensor &grad = one.grads.at(param.name), &weight = one.weights.at(param.name);
    const std::string where = on + param.name;
    if (!param.trained) {
      EXPECT_TRUE(many.weights.at(param.name).equal(weight)) << where << " must be equal bit for bit";
      EXPECT_GT(at::norm(weight).item<double>(), 0) << where << " never moved: the test would be blind to it";
      continue;
    }
    EXPECT_GT(at::norm(grad).item<double>(), 0) << where << " has no gradient: the test would be blind to it";
    tally_.check("gradient", relative_error(many.grads.at(param.name), grad, 1e-6 * norm), 1e-10, where);
    tally_.check("weight", relative_error(many.weights.at(param.name), weight, 1e-6), 1e-8, where);
  }
}

INSTANTIATE_TEST_SUITE_P(Matrix, ParityRanks, testing::ValuesIn(matrix()));

// Some expert of some layer gets no token in a step.
TEST(IdleExpertsRanks, AreInTheMatrix) {
  const Case c{"tp=1", Model::idle};
  const auto run = run_of(c);
  const auto& counts = reference(c).fp64.expert_counts.at(0);
  int64_t idle = 0;
  for (int layer = 0; layer < run.model.num_layers; ++layer) {
    for (int64_t e = 0; e < run.model.num_experts; ++e)
      idle += run.model.moe_layers[layer] && counts[layer * run.model.num_experts + e] == 0;
  }
  EXPECT_GT(idle, 0);
}

}  // namespace
}  // namespace penteract::parity
