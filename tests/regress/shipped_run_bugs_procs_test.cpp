// Bugs of whole runs that other trainers shipped (tests/mutations/classes.toml).
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "cli/program.h"
#include "penteract/base/json.h"

namespace penteract::cli {
namespace {

Json last_line(const SmallRun& run, const std::string& dir) {
  std::string text = run.read(dir + "/metrics.jsonl");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return *parse_json(text.substr(text.rfind('\n') + 1), dir);
}

TEST(OneStageEvalProcs, HasAllLayersOfASplitCheckpoint) {
  const SmallRun run;
  const Ended trained = run.train({"model.num_hidden_layers=3", "layout.split=2|1", "precision.recipe=fp64",
                                   "train.steps=2", "model.initializer_range=0.2"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  // Two batches of 4 windows there, one of 8 here.
  const Ended eval = run_program({"eval", run.path("run"), "--data", run.path("valid.txt"), "--steps", "1", "--json",
                                  "--cache", run.path("cache")});
  ASSERT_EQ(eval.code, 0) << eval.err;
  const double loss = (*parse_json(eval.out, "eval"))["loss"].get<double>();
  EXPECT_NEAR(last_line(run, "run")["eval_loss"].get<double>(), loss, 1e-10 * loss);
}

TEST(TokensSeenProcs, AreEqualInEveryLayout) {
  const SmallRun run;
  const std::vector<std::vector<std::string>> layouts = {
      {}, {"layout.dp=2"}, {"layout.cp=2"}, {"layout.tp=1", "layout.cp=2"}};
  for (size_t i = 0; i < layouts.size(); ++i) {
    const std::string dir = "run" + std::to_string(i);
    std::vector<std::string> sets = {"train.steps=3", "run.dir=" + run.path(dir)};
    sets.insert(sets.end(), layouts[i].begin(), layouts[i].end());
    const Ended ended = run.train(sets);
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(last_line(run, dir)["tokens"], 3 * 4 * 32) << i;
  }
}

// The disk has no room for the checkpoint of step 5, and some for those of steps 10 and 12.
TEST(FailedSaveProcs, TrainingGoesOn) {
  const SmallRun run;
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);  // the program inherits it: a write beyond returns an error
  const auto limit = [](pid_t pid, rlim_t bytes) {
    rlimit now{};
    EXPECT_EQ(::prlimit(pid, RLIMIT_FSIZE, nullptr, &now), 0);
    now.rlim_cur = bytes;
    EXPECT_EQ(::prlimit(pid, RLIMIT_FSIZE, &now, nullptr), 0);
  };
  bool full = false, free_again = false;
  const Ended ended = run.train({"checkpoint.every=5", "train.steps=12"}, [&](const std::string& err, pid_t pid) {
    if (!full && err.find("step 1/") != std::string::npos) limit(pid, 8192), full = true;
    if (!free_again && err.find("was not saved") != std::string::npos) limit(pid, 1 << 30), free_again = true;
  });
  ::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("the checkpoint of step 5 was not saved, training goes on"), std::string::npos) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(run.path("run/checkpoints/step-00000005")));
  EXPECT_TRUE(std::filesystem::exists(run.path("run/checkpoints/step-00000012")));
}

}  // namespace
}  // namespace penteract::cli
