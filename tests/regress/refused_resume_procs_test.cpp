// A resume that is refused left the finished run's record replaced: its recipe.toml held the refused recipe and its
// evidence read "not observed". What a run left may change only once the new one has begun.
#include <gtest/gtest.h>

#include <map>

#include "cli/program.h"

namespace penteract::cli {
namespace {

TEST(RefusedResumeProcs, LeavesTheRecordAsItWas) {
  const SmallRun run;
  ASSERT_EQ(run.train().code, 0);
  std::map<std::string, std::string> before;
  for (const char* name : {"recipe.toml", "environment.json", "evidence.json", "metrics.jsonl"}) {
    before[name] = run.read(std::string("run/") + name);
  }
  for (const std::string set : {"run.seed=5", "layout.pp=1", "data.seq_length=16"}) {
    const Ended refused = run.train({set});
    EXPECT_EQ(refused.code, 2) << set << refused.err;
    EXPECT_EQ(refused.err.find("rank "), std::string::npos) << "no rank is to blame: " << refused.err;
    for (const auto& [name, text] : before) EXPECT_EQ(run.read("run/" + name), text) << set << " " << name;
    EXPECT_FALSE(std::filesystem::exists(run.path("run/logs/flight-records.txt")));
  }
  EXPECT_EQ(run.train({"train.steps=7"}).code, 0);
}

}  // namespace
}  // namespace penteract::cli
