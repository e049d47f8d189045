// Committed steps whose parts are gone were "incomplete", so the run started afresh and replaced what was left; a copied
// step directory was resumed again and again; a pipe in the place of a file was waited for.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cli/program.h"

namespace penteract::cli {
namespace {

namespace fs = std::filesystem;

TEST(LostStepsProcs, AreNoFreshStart) {
  const SmallRun run;
  ASSERT_EQ(run.train().code, 0);
  for (const char* step : {"step-00000004", "step-00000006"}) {
    fs::remove(run.path("run/checkpoints/" + std::string(step) + "/state.json"));
  }
  const std::string metrics = run.read("run/metrics.jsonl");
  const Ended ended = run.train({"train.steps=7"});
  EXPECT_EQ(ended.code, 3) << ended.err;
  EXPECT_EQ(run.read("run/metrics.jsonl"), metrics);
  EXPECT_TRUE(fs::exists(run.path("run/checkpoints/step-00000006/rank-00000.safetensors")));
}

TEST(LostStepsProcs, AStepUnderAnotherNumberIsPassedOver) {
  const SmallRun run;
  ASSERT_EQ(run.train().code, 0);
  fs::copy(run.path("run/checkpoints/step-00000006"), run.path("run/checkpoints/step-00000010"),
           fs::copy_options::recursive);
  ASSERT_EQ(run.train({"train.steps=8"}).code, 0);
  const Ended again = run.train({"train.steps=8"});
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.out.find("step 8 is its last"), std::string::npos) << again.out << again.err;
}

TEST(LostStepsProcs, APipeIsNoFile) {
  const SmallRun run;
  ASSERT_EQ(run.train({"checkpoint.keep=1"}).code, 0);
  const std::string state = run.path("run/checkpoints/step-00000006/state.json");
  fs::remove(state);
  ASSERT_EQ(::mkfifo(state.c_str(), 0600), 0);
  EXPECT_EQ(run.train().code, 3);
  const Ended typo = run_program({"inspect", run.path("run"), "--josn", "--json"});
  EXPECT_EQ(typo.code, 2);
  EXPECT_EQ(typo.out.front(), '{') << typo.out;
}

}  // namespace
}  // namespace penteract::cli
