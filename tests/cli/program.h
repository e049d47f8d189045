// Runs the program as a user does: arguments, exit code, stdout and stderr. Kills it after a deadline.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace penteract::cli {

struct Ended {
  int code = -1;  // 128 + signal where it was killed
  std::string out, err;
};

// The program that was built beside this test.
inline std::string program_path() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "penteract";
}

// `watch` is called with all of stderr so far whenever some came, and the process id.
inline Ended run_program(std::vector<std::string> args, const std::string& input = "",
                         const std::function<void(const std::string&, pid_t)>& watch = {}, int deadline_s = 120) {
  int in[2], out[2], err[2];
  EXPECT_EQ(::pipe(in) | ::pipe(out) | ::pipe(err), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(in[0], 0), ::dup2(out[1], 1), ::dup2(err[1], 2);
    for (int fd : {in[0], in[1], out[0], out[1], err[0], err[1]}) ::close(fd);
    // The program beside the test, wherever both were built or carried to.
    std::string binary = program_path();
    std::vector<char*> argv = {binary.data()};
    for (auto& a : args) argv.push_back(a.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(in[0]), ::close(out[1]), ::close(err[1]);
  EXPECT_EQ(::write(in[1], input.data(), input.size()), static_cast<ssize_t>(input.size()));
  ::close(in[1]);
  Ended ended;
  const auto start = std::chrono::steady_clock::now();
  pollfd fds[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  int open = 2;
  while (open > 0) {
    ::poll(fds, 2, 200);
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || (fds[i].revents & (POLLIN | POLLHUP)) == 0) continue;
      char buffer[4096];
      const ssize_t n = ::read(fds[i].fd, buffer, sizeof buffer);
      if (n > 0) {
        (i == 0 ? ended.out : ended.err).append(buffer, static_cast<size_t>(n));
        if (i == 1 && watch) watch(ended.err, child);
      } else {
        ::close(fds[i].fd);
        fds[i].fd = -1;
        --open;
      }
    }
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(deadline_s)) ::kill(child, SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

// A folder with a text, a tokenizer and a small recipe; removed at the end.
class SmallRun {
 public:
  SmallRun() {
    folder_ = std::filesystem::temp_directory_path() / ("penteract-cli-" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::string text;
    for (int i = 0; i < 400; ++i)
      text += "The " + std::to_string(i * 7919 % 100) + " quick foxes jump over lazy dog number " + std::to_string(i) +
              ".\n";
    write("train.txt", text);
    write("valid.txt", text.substr(0, 4000));
    recipe_ =
        "[run]\ndir = \"" + path("run") +
        "\"\n[model]\nfamily = \"qwen3_moe\"\nnum_hidden_layers = 2\nhidden_size = 16\n"
        "moe_intermediate_size = 8\nnum_attention_heads = 4\nnum_key_value_heads = 2\nnum_experts = "
        "4\nnum_experts_per_tok = 2\n"
        "[layout]\ntp = 2\npp = 2\nep = 2\n[data]\ntokenizer = \"" PENT_SOURCE_DIR
        "/tests/golden/tokenizer/qwen.json\"\n"
        "train = [\"" +
        path("train.txt") + "\"]\nvalid = [\"" + path("valid.txt") + "\"]\ntest = [\"" + path("valid.txt") +
        "\"]\n"
        "seq_length = 32\n[batch]\nglobal = 4\n[optimizer]\nlr = 1e-2\n[train]\nsteps = 6\n[checkpoint]\nevery = 2\n";
    write("recipe.toml", recipe_);
  }
  ~SmallRun() { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // train with the recipe and `sets` as --set.
  Ended train(const std::vector<std::string>& sets = {},
              const std::function<void(const std::string&, pid_t)>& watch = {}) const {
    std::vector<std::string> args = {"train", path("recipe.toml")};
    for (const auto& set : sets) {
      args.push_back("--set");
      args.push_back(set);
    }
    return run_program(args, "", watch);
  }
  // The recipe with `from` replaced by `to`, written anew.
  void spoil(const std::string& from, const std::string& to) const {
    std::string text = recipe_;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write("recipe.toml", text.replace(at, from.size(), to));
  }

 private:
  std::filesystem::path folder_;
  std::string recipe_;
};

}  // namespace penteract::cli
