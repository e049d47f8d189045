// Row C1: a process killed at any moment of its saves leaves a checkpoint that is whole, or none.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "fixture.h"
#include "penteract/checkpoint/find.h"
#include "penteract/checkpoint/reader.h"

namespace penteract::checkpoint {
namespace {

TEST(KillProcs, AtTwentyMomentsOfItsSaves) {
  const TempDir dir;
  int64_t newest = 0;
  for (int kill_number = 0; kill_number < 20; ++kill_number) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // Goes on from the newest step, as a resumed run does, until it is killed.
      for (int64_t step = newest + 1;; ++step) {
        if (!write_step(dir.path(), step, 2, step, 1).ok()) ::_exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(3000 + 7919 * kill_number % 60000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself with " << WEXITSTATUS(status);

    std::vector<std::string> notes;
    const auto found = find_newest(dir.path(), &notes);
    ASSERT_TRUE(found.ok()) << found.error().message();
    if (!found->has_value()) {
      ASSERT_EQ(newest, 0) << "a step was there and is gone";
      continue;
    }
    const auto reader = Reader::open(**found);
    ASSERT_TRUE(reader.ok());
    const int64_t step = (*reader)->state().step;
    ASSERT_GE(step, newest);
    newest = step;
    at::Tensor out = at::zeros({7, 5}, at::TensorOptions(at::kFloat));
    ASSERT_TRUE((*reader)->read("master.embed.weight", topology::Slice::whole({7, 5}), out).ok());
    EXPECT_TRUE(out.equal(global_tensor({7, 5}, at::kFloat, step)));
  }
  EXPECT_GT(newest, 0);
}

}  // namespace
}  // namespace penteract::checkpoint
