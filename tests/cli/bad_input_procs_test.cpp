// What a user gets wrong: one message with the culprit and the remedy, the documented exit code, no hang, nothing lost.
#include <gtest/gtest.h>

#include "cli/program.h"

namespace penteract::cli {
namespace {

struct Bad {
  const char* name;
  const char* from;
  const char* to;
  int code;
  const char* message;  // part of stderr
};
void PrintTo(const Bad& bad, std::ostream* os) { *os << bad.name; }

class BadRunProcs : public testing::TestWithParam<Bad> {};

TEST_P(BadRunProcs, EndsWithOneMessageAndItsCode) {
  const Bad& bad = GetParam();
  const SmallRun run;
  run.write("empty.txt", " \n");
  run.spoil(bad.from, bad.to);
  const Ended ended = run.train();
  EXPECT_EQ(ended.code, bad.code) << ended.err;
  EXPECT_NE(ended.err.find(bad.message), std::string::npos) << ended.err;
  size_t errors = 0;
  for (size_t at = 0; (at = ended.err.find("error:", at)) != std::string::npos; ++at) ++errors;
  EXPECT_EQ(errors, 1u) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(run.path("run/metrics.jsonl")));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadRunProcs,
    testing::Values(Bad{"key", "steps = 6", "stepz = 6", 2, "train.steps"},
                    Bad{"type", "steps = 6", "steps = \"6\"", 2, "whole number"},
                    Bad{"range", "seq_length = 32", "seq_length = 0", 2, "at least 1"},
                    Bad{"axes", "tp = 2\npp = 2\nep = 2", "dp = 2\nep = 3", 4, "ep can be"},
                    Bad{"ranks", "[run]", "[run]\nranks = 6", 4, "6 ranks"},
                    Bad{"heads", "tp = 2\npp = 2\nep = 2", "tp = 8\nep = 2", 4, "num_attention_heads"},
                    Bad{"experts", "tp = 2\npp = 2\nep = 2", "cp = 3\nep = 3", 4, "num_experts"},
                    Bad{"width", "tp = 2\npp = 2\nep = 2", "cp = 3\netp = 3", 4, "moe_intermediate_size"},
                    Bad{"split_sum", "pp = 2", "pp = 2\nsplit = \"2|1\"", 4, "adds up to 3"},
                    Bad{"split_stages", "pp = 2", "pp = 2\nsplit = \"1|1|1\"", 4, "3 stages"},
                    Bad{"missing_text", "train.txt", "nowhere.txt", 3, "nowhere.txt"},
                    Bad{"empty_text", "train.txt", "empty.txt", 3, "empty.txt"},
                    Bad{"missing_tokenizer", "qwen.json", "nowhere.json", 3, "nowhere.json"},
                    Bad{"vocabulary", "hidden_size = 16", "hidden_size = 16\nvocab_size = 40", 3, "vocab_size"},
                    Bad{"batch", "global = 4", "global = 4\nmicro = 3", 4, "batch.global"},
                    Bad{"unwritable", "/run\"", "/train.txt/run\"", 8, "train.txt"}),
    [](const auto& bad) { return bad.param.name; });

TEST(BadCommandProcs, UsageIsTwo) {
  EXPECT_EQ(run_program({}).code, 2);
  EXPECT_EQ(run_program({"trian"}).code, 2);
  EXPECT_EQ(run_program({"train", "/nowhere/recipe.toml"}).code, 3);
  const SmallRun run;
  EXPECT_EQ(run_program({"train", run.path("recipe.toml"), "--layout", "tp=x"}).code, 2);
  EXPECT_EQ(run_program({"train", run.path("recipe.toml"), "--device", "cuda"}).code, 2);
  EXPECT_EQ(run_program({"train", run.path("recipe.toml"), "--ranks", "7"}).code, 4);
  EXPECT_EQ(run_program({"--help"}).code, 0);
  EXPECT_EQ(run_program({"train", "--help"}).code, 0);
}

TEST(BadCommandProcs, ChangedModelOfACheckpointLosesNothing) {
  const SmallRun run;
  ASSERT_EQ(run.train({"train.steps=2"}).code, 0);
  const Ended other = run.train({"model.hidden_size=32"});
  EXPECT_EQ(other.code, 2) << other.err;
  EXPECT_EQ(run_program({"verify", run.path("run")}).code, 0);
  EXPECT_EQ(run.train().code, 0);
}

TEST(BadCommandProcs, AllCheckpointsDamagedIsNoFreshStart) {
  const SmallRun run;
  ASSERT_EQ(run.train({"train.steps=2", "checkpoint.keep=1"}).code, 0);
  std::filesystem::resize_file(run.path("run/checkpoints/step-00000002/rank-00000.safetensors"), 100);
  const Ended ended = run.train();
  EXPECT_EQ(ended.code, 3) << ended.err;
  EXPECT_NE(ended.err.find("step-00000002"), std::string::npos) << ended.err;
}

TEST(BadCommandProcs, TwoRunsInOneFolder) {
  const SmallRun run;
  std::string second;
  int code = -1;
  // The first one goes on until the second has ended.
  run.train({"train.steps=1000000"}, [&](const std::string& err, pid_t first) {
    if (code < 0 && err.find("step 1/") != std::string::npos) {
      const Ended other = run.train();
      code = other.code, second = other.err;
      ::kill(first, SIGTERM);
    }
  });
  EXPECT_EQ(code, 8) << second;
  EXPECT_NE(second.find("another run"), std::string::npos) << second;
}

TEST(BadCommandProcs, NonfiniteEndsWithSix) {
  const SmallRun run;
  // A learning rate that throws the weights to infinity at the first update.
  const Ended ended =
      run.train({"optimizer.lr=1e6", "optimizer.clip_grad_norm=0.0", "train.steps=40", "train.max_skipped_steps=2",
                 "precision.recipe=fp32", "model.initializer_range=100.0"});
  EXPECT_EQ(ended.code, 6) << ended.err;
  EXPECT_NE(ended.err.find("not finite"), std::string::npos) << ended.err;
}

TEST(DataProcs, BuildTokenizeAndInspect) {
  const SmallRun run;
  const std::string tokenizer = PENT_SOURCE_DIR "/tests/golden/tokenizer/qwen.json";
  const Ended built =
      run_program({"data", "build", run.path("train.txt"), "--out", run.path("d"), "--tokenizer", tokenizer});
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_EQ(run_program({"inspect", run.path("d")}).code, 0);
  const Ended shown = run_program({"data", "inspect", run.path("d"), "--sample", "0", "--tokenizer", tokenizer});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(shown.out.find("quick foxes"), std::string::npos);
  EXPECT_EQ(run_program({"data", "inspect", run.path("d"), "--sample", "5"}).code, 2);
  const Ended ids = run_program({"data", "tokenize", "--tokenizer", tokenizer}, "{\"text\": \"The quick\"}\n");
  ASSERT_EQ(ids.code, 0) << ids.err;
  const Ended text = run_program({"data", "tokenize", "--tokenizer", tokenizer, "--decode"}, ids.out);
  EXPECT_EQ(text.out, "{\"text\":\"The quick\"}\n");
  EXPECT_EQ(run_program({"data", "tokenize", "--tokenizer", tokenizer}, "no json\n").code, 3);
  // A dataset trains like the text it was made of.
  run.spoil("train.txt", "d");
  const Ended trained = run.train({"train.steps=2", "run.dir=" + run.path("from-dataset")});
  EXPECT_EQ(trained.code, 0) << trained.err;
}

}  // namespace
}  // namespace penteract::cli
