// Models and layouts drawn at random, fp64, against one rank: what the matrix does not name. A fixed number of draws a
// run; PENT_TEST_SEED gives others.
#include "parity/matrix.h"
#include "support/random_layout.h"
#include "support/test_seed.h"

namespace penteract::parity {
namespace {

constexpr int kNumDraws = 16;
constexpr int kMaxRanks = 12;
constexpr int64_t kSteps = 3;

spec::RunSpec random_run(std::mt19937_64& rng) {
  auto draw = [&](int least, int most) { return least + testing::draw_below(most - least + 1, rng); };
  auto one_of = [&](std::vector<int> values) {
    return values[testing::draw_below(static_cast<int>(values.size()), rng)];
  };
  spec::RunSpec run = small_moe();
  auto& m = run.model;
  m.num_layers = draw(1, 5);
  m.hidden_size = draw(5, 24);
  m.num_heads = one_of({2, 3, 4, 6});
  do m.num_kv_heads = draw(1, static_cast<int>(m.num_heads));
  while (m.num_heads % m.num_kv_heads != 0);
  m.head_dim = 2 * draw(1, 4);
  m.vocab_size = draw(17, 101);
  m.intermediate_size = one_of({8, 12});
  m.num_experts = one_of({2, 3, 4, 6, 8, 12});
  m.num_experts_per_tok = draw(1, static_cast<int>(std::min<int64_t>(3, m.num_experts)));
  m.moe_intermediate_size = one_of({4, 6, 12});
  m.moe_layers.assign(m.num_layers, false);
  for (int i = 0; i < m.num_layers; ++i) m.moe_layers[i] = draw(0, 2) > 0;
  m.norm_topk_prob = draw(0, 1) == 1;
  m.router_bias = draw(0, 1) == 1;
  m.qk_norm = draw(0, 1) == 1;
  m.tie_embeddings = draw(0, 1) == 1;
  run.router.balance = m.router_bias ? spec::Balance::bias : spec::Balance::sequence;
  run.router.z_coef = 0.02;
  run.data.seq_length = draw(2, 13);
  run.layout = testing::random_layout(m, kMaxRanks, rng);
  run.micro_batch = draw(1, 2);
  run.global_batch = run.layout.dp * run.micro_batch * draw(1, 3);
  return run;
}

TEST(RandomRanks, MatchOneRank) {
  const uint64_t seed = testing::test_seed();
  Tally tally;
  for (int i = 0; i < kNumDraws && !HasFailure(); ++i) {
    std::mt19937_64 rng(seed + i);
    const spec::RunSpec run = random_run(rng);
    const auto& m = run.model;
    const std::string where = "PENT_TEST_SEED=" + std::to_string(seed + i) + ", " + topology::to_string(run.layout);
    SCOPED_TRACE(where + ": " + std::to_string(m.num_layers) + " layers, hidden " + std::to_string(m.hidden_size) +
                 ", heads " + std::to_string(m.num_heads) + "/" + std::to_string(m.num_kv_heads) + ", vocabulary " +
                 std::to_string(m.vocab_size) + ", experts " + std::to_string(m.num_experts) + ", batch " +
                 std::to_string(run.global_batch) + "/" + std::to_string(run.micro_batch));
    spec::RunSpec alone = run;
    alone.layout = {};
    alone.micro_batch = 1;
    const LayoutRun one = run_layout(alone, {.steps = kSteps}), many = run_layout(run, {.steps = kSteps});
    ASSERT_EQ(many.losses.size(), one.losses.size());
    const double norm = one.norms[0];
    tally.check("norm", std::abs(many.norms[0] - norm) / norm, 1e-12, where);
    EXPECT_EQ(many.expert_counts, one.expert_counts);
    for (size_t s = 0; s < one.losses.size(); ++s)
      tally.check("loss", std::abs(many.losses[s] - one.losses[s]) / one.losses[s], 1e-8, where);
    for (const auto& [name, grad] : one.grads)
      tally.check("gradient", relative_error(many.grads.at(name), grad, 1e-6 * norm), 1e-10, where + ", " + name);
    for (const auto& [name, weight] : one.weights)
      tally.check("weight", relative_error(many.weights.at(name), weight, 1e-6), 1e-8, where + ", " + name);
  }
  tally.print("random, PENT_TEST_SEED=" + std::to_string(seed));
}

}  // namespace
}  // namespace penteract::parity
