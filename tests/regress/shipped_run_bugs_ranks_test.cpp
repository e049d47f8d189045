// Bugs around a run that other trainers shipped (tests/mutations/classes.toml): buffers in flight, errors of one rank,
// checkpoints of another model.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "checkpoint/fixture.h"
#include "parity/small_models.h"
#include "penteract/checkpoint/find.h"
#include "penteract/checkpoint/save.h"
#include "penteract/model/engine.h"
#include "penteract/parallel/pipeline.h"
#include "penteract/train/state_io.h"
#include "support/run_ranks.h"

namespace penteract {
namespace {

using ::testing::HasSubstr;

// Larger than what a send copies, to a receiver that is slower than the sender.
TEST(InFlightRanks, ActivationsArriveAsTheyWereSent) {
  constexpr int kMicroBatches = 4;
  constexpr int64_t kNumel = 4096;
  testing::run_ranks(2, [&](comm::RankContext& context) {
    const auto lists = or_throw(schedule::make_schedule("forward_only", 2, 1, kMicroBatches));
    parallel::PipelineOptions options;
    options.activation_shape = {kNumel};
    options.training = false;
    parallel::run_pipeline(
        lists[context.rank], context.world,
        [&](int micro_batch, const at::Tensor& input) {
          const at::Tensor own = at::full({kNumel}, static_cast<float>(micro_batch));
          if (context.rank == 0) return own;
          EXPECT_TRUE(input.equal(own)) << "micro-batch " << micro_batch;
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          return input + 1;
        },
        options);
  });
}

TEST(LoadErrorRanks, ReachesEveryRank) {
  const checkpoint::TempDir dir;
  ASSERT_TRUE(checkpoint::write_step(dir.path(), 10, 2, 100).ok());
  std::filesystem::remove(dir / "step-00000010/state.json");  // committed, and then lost
  testing::run_ranks(3, [&](comm::RankContext& context) {
    const auto found = checkpoint::find_newest(context.world, dir.path(), nullptr);
    EXPECT_TRUE(!found.ok() && found.error().code == ErrorCode::checkpoint_damaged) << "rank " << context.rank;
  });
}

// A head of its own, which the tied model lacks, and the other way round.
TEST(CheckpointKeysRanks, AreThoseOfTheModel) {
  const auto with_engine = [](bool tied, const std::function<Status(comm::RankContext&, model::Engine&)>& fn) {
    spec::RunSpec run = parity::small_dense();
    run.model.num_layers = 1;
    run.model.moe_layers = {false};
    run.model.tie_embeddings = tied;
    return comm::run_rank_threads(1, {}, [&](comm::RankContext& context) {
      model::Engine engine(context, run, parallel::Holding::training);
      engine.init_weights();
      return fn(context, engine);
    });
  };
  for (const bool tied : {false, true}) {
    const checkpoint::TempDir dir;
    const Status saved = with_engine(tied, [&](comm::RankContext& context, model::Engine& engine) {
      checkpoint::SharedState state;
      state.step = 1;
      return checkpoint::save(context.world, dir.path(), state, train::checkpoint_pieces(engine.store()), 0);
    });
    ASSERT_TRUE(saved.ok()) << saved.error().message();
    const auto reader = checkpoint::Reader::open(dir / "step-00000001");
    ASSERT_TRUE(reader.ok());
    const auto load = [&](comm::RankContext&, model::Engine& engine) {
      return train::load_weights(checkpoint::StepWeights(**reader), engine.store());
    };
    EXPECT_TRUE(with_engine(tied, load).ok());
    const Status other = with_engine(!tied, load);
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().code, ErrorCode::checkpoint_mismatch);
    EXPECT_THAT(other.error().message(), HasSubstr("lm_head.weight"));
  }
}

}  // namespace
}  // namespace penteract
