// fp32, one step: a layout's gradients are as near to the fp64 ones as those of one rank are, but for a small factor.
#include "parity/matrix.h"

namespace penteract::parity {
namespace {

class Fp32ParityRanks : public testing::TestWithParam<Case> {
 protected:
  static void TearDownTestSuite() { tally_.print("fp32"); }
  static inline Tally tally_;
};

TEST_P(Fp32ParityRanks, MatchesOneRank) {
  const Case& c = GetParam();
  const Reference& ref = reference(c);
  const spec::RunSpec run = with_precision(run_of(c), spec::Recipe::fp32, ref.seed);
  const LayoutRun many = run_layout(run, {.steps = 1});
  ASSERT_EQ(many.norms.size(), 1u);
  const std::string on = testing::PrintToString(c) + ", ";
  const double norm = ref.fp64.norms[0];
  tally_.check("norm", std::abs(many.norms[0] - norm) / norm, 1e-6, on + "step 1");
  EXPECT_EQ(many.expert_counts, ref.fp32.expert_counts) << on << "the routes differ";
  for (const auto& param : spec::param_table(run.model)) {
    if (!param.trained) continue;
    const at::Tensor& exact = ref.fp64.grads.at(param.name);
    const double one_rank = relative_error(ref.fp32.grads.at(param.name), exact, 1e-6 * norm);
    tally_.check("gradient", relative_error(many.grads.at(param.name), exact, 1e-6 * norm),
                 std::max(1e-5, 4 * one_rank), on + param.name);
  }
}

INSTANTIATE_TEST_SUITE_P(Matrix, Fp32ParityRanks, testing::ValuesIn(matrix()));

}  // namespace
}  // namespace penteract::parity
