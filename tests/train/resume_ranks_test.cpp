// Train 6 = train 3, save, load into a new engine, 3 more: bit for bit, in every precision. And twice the same run is
// the same bits, in memory and on disk.
#include <gtest/gtest.h>

#include <filesystem>

#include "parity/small_models.h"
#include "penteract/base/file.h"
#include "penteract/base/hash.h"
#include "penteract/base/rng.h"
#include "penteract/checkpoint/save.h"
#include "penteract/checkpoint/step_directory.h"
#include "penteract/model/engine.h"
#include "penteract/train/lr_schedule.h"
#include "penteract/train/state_io.h"

namespace penteract::train {
namespace {

namespace fs = std::filesystem;

struct Case {
  spec::Recipe precision;
  const char* layout;
};

class ResumeRanks : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / ("penteract-resume-" + std::to_string(::getpid()))).string();
    fs::create_directories(folder_);
    run_ = parity::small_moe();
    run_.precision = GetParam().precision;
    run_.layout = or_throw(topology::complete_layout(or_throw(topology::parse_layout(GetParam().layout)), 0));
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Steps first..last; starts from `resume` where it is given; saves the last step into `save`. Losses as bits.
  std::vector<double> train(int64_t first, int64_t last, const std::string& resume, const std::string& save) {
    std::vector<double> losses;
    const Status status =
        comm::run_rank_threads(run_.layout.num_ranks(), {}, [&](comm::RankContext& context) -> Status {
          model::Engine engine(context, run_, parallel::Holding::training);
          if (resume.empty()) {
            engine.init_weights();
          } else {
            PENT_ASSIGN(const auto reader, checkpoint::Reader::open(resume));
            PENT_TRY(load_training_state(*reader, engine.store()));
          }
          for (int64_t step = first; step <= last; ++step) {
            const auto result = engine.train_step(
                [&](int64_t row, model::Row& out) {
                  const auto key = philox_key(9, std::to_string(step) + "/" + std::to_string(row));
                  for (int64_t i = 0; i <= run_.data.seq_length; ++i)
                    out.tokens[i] = static_cast<int32_t>(permute_index(key, 101, static_cast<uint64_t>(i)));
                  return true;
                },
                learning_rate(run_.optimizer, 6, step), step);
            if (context.rank == 0) losses.push_back(result.loss);
          }
          checkpoint::SharedState state;
          state.step = last;
          return checkpoint::save(context.world, save, state, checkpoint_pieces(engine.store()), 0);
        });
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
    return losses;
  }

  // name -> checksum of every file of a step.
  std::map<std::string, std::string> files(const std::string& folder, int64_t step) {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::directory_iterator(folder + "/" + checkpoint::step_name(step))) {
      const auto bytes = *read_file(entry.path().string());
      out[entry.path().filename().string()] = hash128_hex(bytes.data(), bytes.size());
    }
    return out;
  }

  std::string folder_;
  spec::RunSpec run_;
};

TEST_P(ResumeRanks, TwiceTheSameRunAndAStopInTheMiddleAreBitEqual) {
  const auto whole = train(1, 6, "", folder_ + "/a");
  const auto again = train(1, 6, "", folder_ + "/b");
  ASSERT_EQ(whole.size(), 6u);
  EXPECT_EQ(whole, again);
  EXPECT_GE(files(folder_ + "/a", 6).size(), 2u * run_.layout.num_ranks());
  EXPECT_EQ(files(folder_ + "/a", 6), files(folder_ + "/b", 6));

  auto halves = train(1, 3, "", folder_ + "/c");
  const auto rest = train(4, 6, folder_ + "/c/" + checkpoint::step_name(3), folder_ + "/c");
  halves.insert(halves.end(), rest.begin(), rest.end());
  EXPECT_EQ(whole, halves);
  EXPECT_EQ(files(folder_ + "/a", 6), files(folder_ + "/c", 6));
}

// The weights alone, on other numbers of ranks, give the loss of the run's own layout.
TEST_P(ResumeRanks, WeightsLoadOnAnyNumberOfRanks) {
  train(1, 2, "", folder_ + "/a");
  auto eval = [&](const char* layout) {
    run_.layout = or_throw(topology::complete_layout(or_throw(topology::parse_layout(layout)), 0));
    double loss = 0;
    const Status status =
        comm::run_rank_threads(run_.layout.num_ranks(), {}, [&](comm::RankContext& context) -> Status {
          model::Engine engine(context, run_, parallel::Holding::weights);
          PENT_ASSIGN(const auto reader, checkpoint::Reader::open(folder_ + "/a/" + checkpoint::step_name(2)));
          PENT_TRY(load_weights(checkpoint::StepWeights(*reader), engine.store()));
          const auto result = engine.eval_batch([&](int64_t row, model::Row& out) {
            for (int64_t i = 0; i <= run_.data.seq_length; ++i)
              out.tokens[i] = static_cast<int32_t>((7 * row + 3 * i) % 101);
            return true;
          });
          if (context.rank == 0) loss = result.loss_sum / static_cast<double>(result.target_tokens);
          return {};
        });
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
    return loss;
  };
  const double one = eval("tp=1");
  EXPECT_GT(one, 1);
  // fp64: summation order alone; bf16: activations rounded at other places, eps 2^-8 over 4 layers of residuals.
  const double bound = GetParam().precision == spec::Recipe::fp64   ? 1e-11
                       : GetParam().precision == spec::Recipe::fp32 ? 1e-5
                                                                    : 4 * 0x1p-8;
  for (const char* layout : {"tp=2", "pp=2", "cp=2", "dp=2,ep=2", "tp=2,pp=2,ep=2"}) {
    EXPECT_LT(std::abs(eval(layout) - one), bound * one) << layout;
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, ResumeRanks,
                         testing::Values(Case{spec::Recipe::fp64, "tp=2,pp=2,cp=2,ep=2"},
                                         Case{spec::Recipe::fp32, "tp=2,dp=2,etp=2,ep=2"},
                                         Case{spec::Recipe::bf16, "tp=2,pp=2,cp=2,dp=2,ep=4"},
                                         Case{spec::Recipe::bf16, "tp=1"}));

}  // namespace
}  // namespace penteract::train
