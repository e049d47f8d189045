// A resume with another batch.global drew samples again or left some out: the position was computed from the step and
// today's batch instead of being counted.
#include <gtest/gtest.h>

#include "cli/program.h"
#include "penteract/base/json.h"

namespace penteract::cli {
namespace {

TEST(BatchChangeProcs, ThePositionIsCounted) {
  const SmallRun run;
  auto samples_at = [&](const std::string& step) {
    return (*parse_json(run.read("run/checkpoints/" + step + "/state.json"), step))["samples"].get<int64_t>();
  };
  ASSERT_EQ(run.train({"train.steps=2"}).code, 0);
  EXPECT_EQ(samples_at("step-00000002"), 8);
  ASSERT_EQ(run.train({"batch.global=8"}).code, 0);
  EXPECT_EQ(samples_at("step-00000004"), 24);
  EXPECT_EQ(samples_at("step-00000006"), 40);
}

// Evaluation looks at the same windows whatever the layout's batch is.
TEST(BatchChangeProcs, EvaluationStepsDoNotDependOnTheRanks) {
  const SmallRun run;
  ASSERT_EQ(run.train({"train.steps=2"}).code, 0);
  for (const std::string ranks : {"1", "3"}) {
    std::vector<std::string> args = {"eval", run.path("run"), "--data"};
    for (const std::string& more :
         {run.path("valid.txt"), std::string("--steps"), std::string("1"), std::string("--json"),
          std::string("--ranks"), ranks, std::string("--cache"), run.path("cache")}) {
      args.push_back(more);
    }
    const Ended eval = run_program(args);
    ASSERT_EQ(eval.code, 0) << eval.err;
    EXPECT_EQ((*parse_json(eval.out, "eval"))["windows"], 8) << ranks;
  }
}

}  // namespace
}  // namespace penteract::cli
