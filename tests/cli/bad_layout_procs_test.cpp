// Layouts and recipes that cannot be: exit 2 (what is written) or 4 (what cannot work), one message, what to do below
// it, and nothing made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program.h"

namespace penteract::cli {
namespace {

class BadLayoutProcs : public testing::Test {
 protected:
  // One error, with a remedy below it, naming `part`; the run directory was not made.
  void expect_refused(const std::vector<std::string>& options, int code, const std::string& part) {
    std::vector<std::string> args = {"train", run_.path("recipe.toml")};
    args.insert(args.end(), options.begin(), options.end());
    const Ended ended = run_program(args);
    const std::string what = testing::PrintToString(options) + ": " + ended.err;
    EXPECT_EQ(ended.code, code) << what;
    EXPECT_EQ(ended.err.rfind("error: ", 0), 0u) << what;
    EXPECT_EQ(ended.err.find("error: ", 1), std::string::npos) << what;
    EXPECT_NE(ended.err.find("\n  "), std::string::npos) << "no remedy: " << what;
    EXPECT_NE(ended.err.find(part), std::string::npos) << what;
    EXPECT_EQ(ended.out, "") << what;
    EXPECT_FALSE(std::filesystem::exists(run_.path("run"))) << what;
  }

  const SmallRun run_;
};

struct Case {
  const char* text;
  const char* part;  // of the message
};

TEST_F(BadLayoutProcs, WhatCannotBeReadIsTwo) {
  for (const Case& c : {
           Case{"", "--layout"},
           {" ", "is empty"},
           {"tp", "has no '='"},
           {"tp=0", "no whole number"},
           {"tp=two", "no whole number"},
           {"tp=10000000000000000000", "1048576"},
           {"tp=2;pp=2", "no whole number"},
           {"tp=2,", "has no '='"},
           {"tp=2,tp=2", "stands twice"},
           {"xp=2", "unknown key"},
           {"tpp=2", "did you mean \"tp\"?"},
           {"sp=1", "sp is on or off"},
           {"pp=2,split=", "split is empty"},
           {"pp=2,split=1|", "no whole number"},
           {"pp=2,split=1-1", "no whole number"},
           {"pp=2,split=cost", "not supported yet"},
           {"schedule=", "schedule is empty"},
           {"ep=0", "no whole number"},
           {"tp=2\x1b[31m", "\\x1b"},
       }) {
    expect_refused({"--layout", c.text}, 2, c.part);
  }
}

TEST_F(BadLayoutProcs, WhatCannotWorkIsFour) {
  for (const Case& c : {
           Case{"tp=8", "num_attention_heads"},
           {"pp=3,split=1|1|1", "adds up to 3"},
           {"dp=3", "batch.global"},
           {"dp=8", "use 8, or"},
           {"tp=1048576,pp=1048576,cp=1048576", "at most 1048576"},
           {"tp=1048576,dp=1048576", "at most 1048576"},
           {"ep=1048576,etp=1048576", "at most 1048576"},
           {"dp=2,ep=4", "ep can be 1, 2"},
           {"etp=3", "choose etp that divides 1"},
           {"cp=3,ep=3", "num_experts"},
           {"cp=3,etp=3", "moe_intermediate_size"},
           {"tp=2,sp=off", "sp is off"},
           {"sp=on", "tp is 1"},
           {"pp=2,split=1|1|1", "names 3 stages"},
           {"pp=2,split=2|1", "adds up to 3"},
           {"split=3", "adds up to 3"},
           {"edp=3", "edp=3 does not follow"},
           {"vpp=2", "virtual stages"},
           {"pp=2,schedule=zigzag", "zigzag"},
       }) {
    expect_refused({"--layout", c.text}, 4, c.part);
  }
  expect_refused({"--layout", "tp=2,pp=2", "--ranks", "6"}, 4, "use 4 ranks with dp=1 or 8 ranks with dp=2");
  expect_refused({"--layout", "tp=2,pp=2", "--ranks", "3"}, 4, "use 4 ranks");
  expect_refused({"--layout", "tp=2,dp=2", "--set", "run.ranks=8"}, 4, "the run has 8 ranks");
  expect_refused({"--layout", "tp=2,pp=2,cp=2,dp=8", "--set", "batch.global=64", "--ranks", "32"}, 4, "32 ranks");
}

TEST_F(BadLayoutProcs, RecipeValues) {
  struct Set {
    const char* set;
    int code;
    const char* part;
  };
  for (const Set& s : {
           Set{"layout.tp=0", 2, "expected 1 to 1048576"},
           {"layout.tp=10000000000000000000", 2, "64 bits"},
           {"layout.tp=two", 2, "a whole number"},
           {"layout.edp=2", 2, "unknown key"},
           {"layout.split=\"1|1|1\"", 4, "names 3 stages"},
           {"layout.split=\"\"", 2, "is empty"},
           {"layout.sp=false", 4, "sp is off"},
           {"run.ranks=0", 2, "expected 1"},
           {"run.dir=\"run\\u0000x\"", 2, "NUL"},
           {"data.train=[\"a\\u0000\"]", 2, "NUL"},
           {"data.tokenizer={ path = \"a\\u0000\" }", 2, "NUL"},
           {"data.train=[\"a\"", 2, "array"},
           {"data.seq_length=10000000000000", 2, "expected 1 to 1073741824"},
           {"batch.micro=3", 4, "use 3 or 6"},
           {"optimizer.lr=1e400", 2, "no number between"},
           {"optimizer.betas=[0.9]", 2, "two numbers"},
           {"train.steps=1\noptimizer.lr = 5", 2, "one line"},
           {"train.stepz=6", 2, "did you mean \"steps\"?"},
           {"steps=6", 2, "section.key=value"},
           {"comm.deadline=\"\"", 2, "10m"},
           {"checkpoint.keep=-1", 2, "expected 0"},
           {"precision.recipe=fp8_current", 2, "not supported"},
       }) {
    expect_refused({"--set", s.set}, s.code, s.part);
  }
  expect_refused({"--layout", ""}, 2, "--layout");
  expect_refused({"--precision", ""}, 2, "--precision");
  expect_refused({"--set", ""}, 2, "--set");
  run_.write("recipe.toml", std::string((16 << 20) + 1, '#'));
  expect_refused({}, 2, "at most 16.0 MiB");
  run_.write("recipe.toml", "\x1b[2J = [");
  expect_refused({}, 2, "recipe.toml:1");
}

}  // namespace
}  // namespace penteract::cli
