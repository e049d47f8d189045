// Initial weights depend on seed and parameter alone: equal bits in every layout and at every number of ranks.
#include "parity/matrix.h"

namespace penteract::parity {
namespace {

void expect_equal_bits(const Case& c, spec::Recipe recipe) {
  static std::map<std::pair<Model, spec::Recipe>, std::map<std::string, at::Tensor>> all;
  auto& one = all[{c.model, recipe}];
  spec::RunSpec run = run_of({"tp=1", c.model});
  run.precision = recipe;
  if (one.empty()) one = run_layout(run, {.steps = 0}).weights;
  run.layout = layout_of(c.layout);
  run.global_batch = run.layout.dp;
  const auto many = run_layout(run, {.steps = 0}).weights;
  ASSERT_EQ(many.size(), one.size());
  for (const auto& [name, weight] : many)
    EXPECT_TRUE(weight.equal(one.at(name))) << testing::PrintToString(c) << ", " << name;
}

TEST(InitialWeightsRanks, AreBitEqualInEveryLayout) {
  for (const Case& c : matrix()) {
    expect_equal_bits(c, spec::Recipe::fp64);
    expect_equal_bits(c, spec::Recipe::bf16);
  }
}

TEST(InitialWeightsRanks, AreBitEqualAtEveryNumberOfRanks) {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    for (const char* axis : {"dp=", "cp=", "pp="}) {
      const std::string layout = axis + std::to_string(ranks);
      expect_equal_bits({layout.c_str(), Model::tied}, spec::Recipe::bf16);
    }
  }
}

}  // namespace
}  // namespace penteract::parity
