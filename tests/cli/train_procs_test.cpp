// The program from outside: a whole run, what it leaves, stopping and resuming, and finishing twice.
#include <gtest/gtest.h>

#include <set>

#include "cli/program.h"
#include "penteract/base/json.h"
#include "penteract/base/text.h"

namespace penteract::cli {
namespace {

namespace fs = std::filesystem;

std::vector<Json> metrics_of(const SmallRun& run, const std::string& folder = "run") {
  std::vector<Json> out;
  const std::string text = run.read(folder + "/metrics.jsonl");
  for (const auto& line : split_text(trim(text), '\n')) out.push_back(*parse_json(line, "metrics"));
  return out;
}

TEST(TrainProcs, AWholeRunLeavesItsRecord) {
  const SmallRun run;
  const Ended ended = run.train({"eval.every=3"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto lines = metrics_of(run);
  ASSERT_EQ(lines.size(), 6u);
  for (const char* key : {"step", "loss", "grad_norm", "lr", "tokens", "tokens_per_s", "tflops", "step_ms", "skipped",
                          "nonfinite", "memory_max_bytes", "aux_loss", "target_tokens", "max_expert_load"}) {
    EXPECT_TRUE(lines[0].contains(key)) << key;
  }
  EXPECT_LT(lines[5]["loss"], lines[0]["loss"]);
  EXPECT_EQ(lines[5]["tokens"], 6 * 4 * 32);
  EXPECT_TRUE(lines[2].contains("eval_loss"));
  EXPECT_FALSE(lines[1].contains("eval_loss"));
  EXPECT_TRUE(lines[5].contains("test_loss"));
  EXPECT_EQ(lines[5]["eval_loss"], lines[5]["test_loss"]);  // the same file
  const auto evidence = *parse_json(run.read("run/evidence.json"), "evidence");
  for (const char* fact : {"groups", "model", "data", "forward", "backward", "finite", "checkpoint", "validation"})
    EXPECT_EQ(evidence[fact]["ok"], true) << fact;
  EXPECT_GT(fs::file_size(run.path("run/tb/events.out.tfevents.penteract")), 100u);
  EXPECT_TRUE(fs::exists(run.path("run/recipe.toml")));
  EXPECT_TRUE(fs::exists(run.path("run/environment.json")));
  EXPECT_TRUE(fs::exists(run.path("run/checkpoints/step-00000006")));
  EXPECT_FALSE(fs::exists(run.path("run/checkpoints/step-00000002")));  // keep = 2
  EXPECT_NE(ended.out.find("validation"), std::string::npos);

  const Ended again = run.train({"eval.every=3"});
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.out.find("finished"), std::string::npos) << again.out;
  EXPECT_EQ(metrics_of(run).size(), 6u);

  EXPECT_EQ(run_program({"verify", run.path("run")}).code, 0);
  const Ended eval = run_program({"eval", run.path("run"), "--data", run.path("valid.txt"), "--steps", "2", "--json",
                                  "--cache", run.path("cache")});
  ASSERT_EQ(eval.code, 0) << eval.err;
  // One rank and the run's layout differ by bf16 rounding alone: 2 layers, eps 2^-8.
  EXPECT_NEAR((*parse_json(eval.out, "eval"))["loss"].get<double>(), lines[5]["eval_loss"].get<double>(), 4 * 0x1p-8);
  for (const auto& target : {run.path("run"), run.path("run/checkpoints/step-00000006")}) {
    const Ended shown = run_program({"inspect", target, "--json"});
    EXPECT_EQ(shown.code, 0) << shown.err;
    EXPECT_TRUE(parse_json(shown.out, "inspect").ok()) << shown.out;
  }
}

TEST(TrainProcs, ASignalSavesStopsAndTheRestIsTheUnbrokenRun) {
  const SmallRun run;
  ASSERT_EQ(run.train({"run.dir=" + run.path("whole")}).code, 0);
  bool sent = false;
  const Ended stopped = run.train({}, [&](const std::string& err, pid_t pid) {
    if (!sent && err.find("step 3/6") != std::string::npos) ::kill(pid, SIGTERM), sent = true;
  });
  ASSERT_TRUE(sent);
  // The last steps may be over before the signal is seen; then the run is done.
  ASSERT_TRUE(stopped.code == 75 || stopped.code == 0) << stopped.code << stopped.err;
  const Ended resumed = run.train();
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(stopped.code == 0 || resumed.err.find("resuming from") != std::string::npos) << resumed.err;
  const auto whole = metrics_of(run, "whole"), parts = metrics_of(run);
  ASSERT_EQ(parts.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const char* key : {"step", "loss", "grad_norm", "lr", "tokens", "aux_loss"})
      EXPECT_EQ(parts[i][key], whole[i][key]) << key << " at step " << i + 1;
  }
  for (int rank = 0; rank < 4; ++rank) {
    const std::string part = "/checkpoints/step-00000006/rank-0000" + std::to_string(rank);
    EXPECT_EQ(run.read("run" + part + ".safetensors"), run.read("whole" + part + ".safetensors")) << rank;
    EXPECT_EQ(run.read("run" + part + ".catalog"), run.read("whole" + part + ".catalog")) << rank;
  }
}

TEST(TrainProcs, AChangedRecipeIsPrintedAndOneThatMayNotChangeIsRefused) {
  const SmallRun run;
  ASSERT_EQ(run.train().code, 0);
  const Ended longer = run.train({"train.steps=8", "optimizer.lr=0.001"});
  ASSERT_EQ(longer.code, 0) << longer.err;
  EXPECT_NE(longer.err.find("optimizer.lr"), std::string::npos) << longer.err;
  EXPECT_EQ(metrics_of(run).size(), 8u);
  const Ended refused = run.train({"train.steps=9", "run.seed=5"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("run.seed"), std::string::npos) << refused.err;
}

// Userlog C5, C10: damage is said aloud and the older complete checkpoint is taken; nothing is lost.
TEST(TrainProcs, ADamagedCheckpointIsPassedOver) {
  const SmallRun run;
  ASSERT_EQ(run.train().code, 0);
  const std::string part = run.path("run/checkpoints/step-00000006/rank-00001.safetensors");
  {
    std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-5, std::ios::end);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(-5, std::ios::end);
    file.put(byte);
  }
  EXPECT_EQ(run_program({"verify", run.path("run")}).code, 7);
  const Ended resumed = run.train();
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("step-00000006"), std::string::npos) << resumed.err;
  EXPECT_NE(resumed.err.find("step-00000004"), std::string::npos) << resumed.err;
  EXPECT_EQ(run_program({"verify", run.path("run")}).code, 0);
}

TEST(TrainProcs, LatestMayBeLost) {
  const SmallRun run;
  ASSERT_EQ(run.train({"train.steps=4"}).code, 0);
  fs::remove(run.path("run/checkpoints/latest"));
  const Ended resumed = run.train();
  EXPECT_EQ(resumed.code, 0);
  EXPECT_NE(resumed.err.find("resuming from"), std::string::npos) << resumed.err;
}

}  // namespace
}  // namespace penteract::cli
