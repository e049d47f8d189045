// A gradient that is not finite on one rank skips the step on every rank, before anything is updated (userlog E1,
// Megatron-LLM #33: a NaN under bf16 must be counted without a loss scaler).
#include <gtest/gtest.h>

#include <limits>

#include "parity/small_models.h"
#include "penteract/model/engine.h"

namespace penteract::train {
namespace {

TEST(NonfiniteRanks, NothingIsUpdatedOnAnyRank) {
  for (const auto precision : {spec::Recipe::fp32, spec::Recipe::bf16}) {
    spec::RunSpec run = parity::small_moe();
    run.precision = precision;
    run.layout = or_throw(topology::complete_layout(or_throw(topology::parse_layout("tp=2,pp=2,ep=2")), 0));
    const auto rows = [&](int64_t row, model::Row& out) {
      for (int64_t i = 0; i <= run.data.seq_length; ++i) out.tokens[i] = static_cast<int32_t>((row + 5 * i) % 101);
      return true;
    };
    const Status status = comm::run_rank_threads(4, {}, [&](comm::RankContext& context) -> Status {
      model::Engine engine(context, run, parallel::Holding::training);
      engine.init_weights();
      EXPECT_FALSE(engine.train_step(rows, 1e-3, 1).nonfinite);
      // One weight of one rank goes bad: the last rank's slice of an expert matrix.
      if (context.rank == 3) {
        engine.store()
            .get(parallel::Fusion{"model.layers.3.mlp.experts.down_proj.weight"})
            .at(0)
            ->weight.view({-1})[0]
            .fill_(std::numeric_limits<double>::quiet_NaN());
      }
      std::vector<at::Tensor> before;
      for (const auto& b : engine.store().buffers()) {
        for (const auto& t : {b.master, b.exp_avg, b.exp_avg_sq}) before.push_back(t.clone());
      }
      const auto result = engine.train_step(rows, 1e-3, 2);
      EXPECT_TRUE(result.nonfinite) << "rank " << context.rank;
      size_t i = 0;
      for (const auto& b : engine.store().buffers()) {
        for (const auto& t : {b.master, b.exp_avg, b.exp_avg_sq})
          EXPECT_TRUE(before[i++].equal(t)) << "rank " << context.rank;
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
  }
}

TEST(NonfiniteRanks, ABatchWithoutTargetsChangesNothing) {
  spec::RunSpec run = parity::small_moe();
  run.layout = or_throw(topology::complete_layout(or_throw(topology::parse_layout("cp=2,dp=2,ep=2")), 0));
  const Status status = comm::run_rank_threads(4, {}, [&](comm::RankContext& context) -> Status {
    model::Engine engine(context, run, parallel::Holding::training);
    engine.init_weights();
    const at::Tensor before = engine.store().buffers()[0].master.clone();
    const auto result = engine.train_step([](int64_t, model::Row&) { return false; }, 1e-3, 1);
    EXPECT_EQ(result.target_tokens, 0);
    EXPECT_FALSE(result.nonfinite);
    EXPECT_TRUE(before.equal(engine.store().buffers()[0].master));
    return {};
  });
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
}

}  // namespace
}  // namespace penteract::train
