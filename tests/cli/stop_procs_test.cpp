// Signals before the first step: tokenising ends within a moment with 75, a killed one leaves nothing for long, and the
// same command goes on (userlog G2, A18).
#include <gtest/gtest.h>

#include "cli/program.h"

namespace penteract::cli {
namespace {

namespace fs = std::filesystem;

// Names in a folder that end so.
size_t count(const std::string& folder, const std::string& part) {
  size_t n = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    n += entry.path().filename().string().find(part) != std::string::npos;
  return n;
}

// Seconds of work in one document, so that only a look inside it sees a signal.
void write_long_text(const SmallRun& run, const std::string& name) {
  std::string text;
  for (uint32_t i = 0; text.size() < (size_t{24} << 20); ++i) text += "word" + std::to_string(i * 2654435761u) + " ";
  run.write(name, text);
}

// Sends the signal once a temporary file of the folder shows that tokenising has begun.
auto when_tokenising(const std::string& folder, int signal, bool& sent) {
  return [=, &sent](const std::string&, pid_t pid) {
    for (int i = 0; i < 500 && !sent; ++i) {
      if (count(folder, ".tmp-") > 0) ::kill(pid, signal), sent = true;
      ::usleep(10'000);
    }
  };
}

TEST(StopProcs, ASignalEndsTokenising) {
  const SmallRun run;
  write_long_text(run, "train.txt");
  const std::string cache = run.path("run/cache");
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    bool sent = false;
    const Ended stopped = run.train({}, when_tokenising(cache, signal, sent));
    ASSERT_TRUE(sent) << stopped.err;
    EXPECT_EQ(stopped.code, 75) << stopped.err;
    EXPECT_EQ(stopped.err.find("error:"), std::string::npos) << stopped.err;
    EXPECT_NE(stopped.err.find("nothing to save"), std::string::npos) << stopped.err;
    EXPECT_EQ(count(cache, "."), 0u) << "the text was tokenised to its end, or left half";
    EXPECT_FALSE(fs::exists(run.path("run/recipe.toml")));
  }
  bool sent = false;
  const Ended killed = run.train({}, when_tokenising(cache, SIGKILL, sent));
  ASSERT_EQ(killed.code, 128 + SIGKILL) << killed.err;
  EXPECT_GT(count(cache, ".tmp-"), 0u);
  // The next run removes it and is whole.
  run.write("train.txt", run.read("valid.txt"));
  EXPECT_EQ(run.train({"train.steps=1"}).code, 0);
  EXPECT_EQ(count(cache, ".tmp-"), 0u);
  EXPECT_GT(count(cache, ".idx"), 0u);
}

TEST(StopProcs, ASignalEndsABuildOfADataset) {
  const SmallRun run;
  write_long_text(run, "long.txt");
  fs::create_directories(run.path("out"));
  const std::vector<std::string> args = {"data",
                                         "build",
                                         run.path("long.txt"),
                                         "--out",
                                         run.path("out/d"),
                                         "--tokenizer",
                                         PENT_SOURCE_DIR "/tests/golden/tokenizer/qwen.json"};
  const auto send = [&](int signal) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::string binary = program_path();
      std::vector<char*> argv = {binary.data()};
      for (const auto& a : args) argv.push_back(const_cast<char*>(a.c_str()));
      argv.push_back(nullptr);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    bool sent = false;
    when_tokenising(run.path("out"), signal, sent)("", child);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(sent);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  };
  EXPECT_EQ(send(SIGTERM), 75);
  EXPECT_EQ(count(run.path("out"), "d."), 0u);
  EXPECT_EQ(send(SIGKILL), 128 + SIGKILL);
  EXPECT_EQ(count(run.path("out"), ".tmp-"), 1u);
  EXPECT_EQ(run_program({"data", "build", run.path("valid.txt"), "--out", run.path("out/d"), "--tokenizer",
                         PENT_SOURCE_DIR "/tests/golden/tokenizer/qwen.json"})
                .code,
            0);
  EXPECT_EQ(count(run.path("out"), ".tmp-"), 0u);
  EXPECT_EQ(run_program({"inspect", run.path("out/d")}).code, 0);
}

}  // namespace
}  // namespace penteract::cli
