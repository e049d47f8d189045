// What a run directory records, lost or damaged records of one that goes on, and commands on folders that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program.h"
#include "penteract/base/json.h"
#include "penteract/base/text.h"

namespace penteract::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

TEST(RecordProcs, EachRankHasItsLog) {
  const SmallRun run;
  ASSERT_EQ(run.train({"train.steps=2"}).code, 0);
  for (int rank = 0; rank < 4; ++rank) {
    const std::string log = run.read("run/logs/rank-0000" + std::to_string(rank) + ".log");
    EXPECT_THAT(log, HasSubstr("rank " + std::to_string(rank) + " of 4: tp " + std::to_string(rank % 2)));
    EXPECT_THAT(log, HasSubstr("step 2: "));
    EXPECT_THAT(log, HasSubstr(" ended\n"));
  }
  EXPECT_THAT(run.read("run/logs/rank-00000.log"), HasSubstr("starting fresh"));
  EXPECT_FALSE(fs::exists(run.path("run/logs/rank-00004.log")));
  ASSERT_EQ(run.train({"train.steps=3"}).code, 0);
  EXPECT_THAT(run.read("run/logs/rank-00003.log"), HasSubstr("goes on from step 2"));
  EXPECT_EQ(run.train({"run.seed=9", "train.steps=4"}).code, 2);
  EXPECT_THAT(run.read("run/logs/rank-00000.log"), HasSubstr("error: run.seed"));
}

TEST(RecordProcs, AFinishedRunShowsWhatItRecorded) {
  const SmallRun run;
  ASSERT_EQ(run.train({"train.steps=2"}).code, 0);
  const std::vector<std::string> args = {"train", run.path("recipe.toml"), "--set", "train.steps=2", "--json"};
  const auto again = *parse_json(run_program(args).out, "stdout");
  EXPECT_EQ(again["already_finished"], true);
  EXPECT_EQ(again["evidence"], *parse_json(run.read("run/evidence.json"), "evidence"));
  EXPECT_EQ(again["evidence"]["forward"]["ok"], true);
  EXPECT_THAT(run.train({"train.steps=2"}).out, HasSubstr("validation loss"));
  for (const std::string damaged : {"", "{}", "{\"groups\": 1}", "\x1b]0;x"}) {
    run.write("run/evidence.json", damaged);
    const Ended ended = run_program(args);
    EXPECT_EQ(ended.code, 0);
    EXPECT_THAT(ended.err, HasSubstr("warning: " + run.path("run/evidence.json")));
    EXPECT_EQ((*parse_json(ended.out, "stdout"))["evidence"]["forward"]["ok"], false);
  }
}

TEST(RecordProcs, LostMetricsAreAWarningAndTheRunGoesOn) {
  const SmallRun run;
  ASSERT_EQ(run.train({"train.steps=2"}).code, 0);
  const std::string warning = "warning: " + run.path("run/metrics.jsonl") + ": holds 0 of the ";
  fs::remove(run.path("run/metrics.jsonl"));
  EXPECT_THAT(run.train({"train.steps=3"}).err, HasSubstr(warning + "2 steps"));
  run.write("run/metrics.jsonl", std::string(5000, '\0') + "\xff\x1b[31m\n{\"step\": \"1\"}\n");
  const Ended binary = run.train({"train.steps=4"});
  EXPECT_EQ(binary.code, 0) << binary.err;
  EXPECT_THAT(binary.err, HasSubstr(warning + "3 steps"));
  const auto lines = split_text(trim(run.read("run/metrics.jsonl")), '\n');
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ((*parse_json(lines[0], "line"))["step"], 4);
  EXPECT_THAT(run.train({"train.steps=5"}).err, HasSubstr("holds 1 of the 4 steps"));
  run.write("run/metrics.jsonl", "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"step\":4}\n{\"step\":5}\n{\"st");
  EXPECT_THAT(run.train({"train.steps=6"}).err, Not(HasSubstr("warning")));
}

TEST(RecordProcs, TextOfFilesDoesNotSteerTheTerminal) {
  const SmallRun run;
  ASSERT_EQ(run.train({"train.steps=2"}).code, 0);
  const std::string rubbish = "\x1b]0;title\x07\x1b[2J\xc2\x9b" + std::string(5000, 'x');
  run.write("run/checkpoints/latest", rubbish.substr(0, 3000));
  const Ended resumed = run.train({"train.steps=3"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("says \"\\x1b]0;title"));
  EXPECT_LT(resumed.err.find("is the newest complete step") - resumed.err.find("says"), 200u);
  run.write("run/metrics.jsonl", "{\"step\": 2, \"a\": \"\x1b[2J\"}\n{\"step\": 2, \"a\\u001b[2J\": 1}\n");
  run.write("run/evidence.json", "{\"a\\u001b[2J\": {}}");
  run.write("text.txt", rubbish);
  const std::string tokenizer = PENT_SOURCE_DIR "/tests/golden/tokenizer/qwen.json";
  const Ended built =
      run_program({"data", "build", run.path("text.txt"), "--out", run.path("d"), "--tokenizer", tokenizer});
  ASSERT_EQ(built.code, 0) << built.err;
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"inspect", run.path("run")},
        {"data", "inspect", run.path("d"), "--sample", "0", "--tokenizer", tokenizer},
        {"train", run.path("run/checkpoints/latest")},
        {"data", "tokenize", "--tokenizer", run.path("text.txt")},
        {"train", "\x1b[2J"}}) {
    const Ended ended = run_program(args);
    for (const std::string& text : {ended.out, ended.err}) {
      EXPECT_EQ(text.find_first_of("\x1b\x07"), std::string::npos) << args[0] << ": " << text;
      EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << args[0] << ": " << text;
    }
  }
}

// Userlog C4: what is none says so; a step that lost its state is damage.
TEST(RecordProcs, AFolderThatIsNoCheckpointIsThree) {
  const SmallRun run;
  ASSERT_EQ(run.train({"train.steps=2"}).code, 0);
  fs::create_directories(run.path("empty"));
  fs::create_directories(run.path("texts"));
  run.write("texts/a.txt", "a");
  for (const char* command : {"verify", "inspect"}) {
    for (const char* path : {"empty", "texts", "texts/a.txt", "nowhere"}) {
      const Ended ended = run_program({command, run.path(path)});
      EXPECT_EQ(ended.code, 3) << command << " " << path << ended.err;
      EXPECT_THAT(ended.err, HasSubstr("\n  name ")) << command << " " << path;
    }
  }
  const std::string step = "run/checkpoints/step-00000002";
  fs::copy(run.path(step), run.path("copy"), fs::copy_options::recursive);
  EXPECT_EQ(run_program({"verify", run.path("copy")}).code, 0);
  fs::remove(run.path("copy/state.json"));
  EXPECT_EQ(run_program({"verify", run.path("copy")}).code, 7);
  fs::remove_all(run.path(step));
  fs::create_directories(run.path(step));
  EXPECT_EQ(run_program({"verify", run.path(step) + "/"}).code, 7);
  EXPECT_EQ(run_program({"verify", run.path("run")}).code, 7);
}

TEST(RecordProcs, ATokenizerGoesByItsContent) {
  const SmallRun run;
  const std::string golden = PENT_SOURCE_DIR "/tests/golden/tokenizer/qwen.json";
  fs::copy_file(golden, run.path("tokenizer.json"));
  const auto with = [&](const std::string& path) { return "data.tokenizer=" + run.path(path); };
  ASSERT_EQ(run.train({"train.steps=2", with("tokenizer.json")}).code, 0);
  fs::create_directories(run.path("elsewhere"));
  fs::rename(run.path("tokenizer.json"), run.path("elsewhere/tokenizer.json"));
  const Ended moved = run.train({"train.steps=3", with("elsewhere/tokenizer.json")});
  EXPECT_EQ(moved.code, 0) << moved.err;
  EXPECT_THAT(moved.err, HasSubstr("changed: data.tokenizer was"));
  // The same path, other content: even a space counts, since what depends on it cannot be known.
  run.write("elsewhere/tokenizer.json", run.read("elsewhere/tokenizer.json") + " ");
  const Ended changed = run.train({"train.steps=4", with("elsewhere/tokenizer.json")});
  EXPECT_EQ(changed.code, 2) << changed.err;
  EXPECT_THAT(changed.err,
              HasSubstr("data.tokenizer: " + run.path("elsewhere/tokenizer.json") + " is not the tokenizer"));
  const Ended eval = run_program({"eval", run.path("run"), "--data", run.path("valid.txt"), "--cache", run.path("c")});
  EXPECT_EQ(eval.code, 2) << eval.err;
  // An end-of-document token that comes from a file beside the tokenizer.
  fs::copy_file(golden, run.path("tokenizer.json"));
  run.write("tokenizer_config.json", "{\"eos_token\": \"<|im_end|>\"}");
  const Ended eod = run.train({"train.steps=4", with("tokenizer.json")});
  EXPECT_EQ(eod.code, 2) << eod.err;
  EXPECT_THAT(eod.err, HasSubstr("error: data.eod"));
  EXPECT_EQ(run.train({"train.steps=4", with("tokenizer.json"), "data.eod=<|endoftext|>"}).code, 0);
}

TEST(RecordProcs, AnEvaluationRefusesKeysThatItWouldIgnore) {
  const SmallRun run;
  ASSERT_EQ(run.train({"train.steps=2"}).code, 0);
  const auto eval = [&](const std::string& set) {
    return run_program({"eval", run.path("run"), "--data", run.path("valid.txt"), "--steps", "1", "--cache",
                        run.path("c"), "--set", set});
  };
  for (const char* set :
       {"batch.global=4", "batch.micro=2", "run.ranks=2", "run.seed=3", "layout.tp=2", "optimizer.lr=1",
        "train.steps=9", "data.valid=[\"x\"]", "checkpoint.keep=1", " batch.micro = 2"}) {
    const Ended ended = eval(set);
    EXPECT_EQ(ended.code, 2) << set << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("would be ignored")) << set;
  }
  EXPECT_EQ(eval("batch.nothing=1").code, 2);
  EXPECT_EQ(eval("precision.recipe=fp32").code, 0);
  EXPECT_EQ(eval("data.seq_length=16").code, 0);
}

}  // namespace
}  // namespace penteract::cli
