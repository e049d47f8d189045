#include "penteract/checkpoint/retention.h"

#include <gtest/gtest.h>

#include "fixture.h"

namespace penteract::checkpoint {
namespace {

namespace fs = std::filesystem;

class RetainSteps : public ::testing::Test {
 protected:
  void save(int64_t step, int keep = 0) { ASSERT_TRUE(write_step(dir_.path(), step, 2, step, keep).ok()); }
  bool has(int64_t step) const { return fs::exists(dir_ / step_name(step)); }
  TempDir dir_;
};

TEST_F(RetainSteps, RecordsReadBackAndAbsentOnesAreNone) {
  EXPECT_TRUE(read_records(dir_.path())->empty());
  const std::vector<std::string> names = {"step-00000007", "step-00000003"};
  ASSERT_TRUE(write_records(dir_.path(), names).ok());
  EXPECT_EQ(*read_records(dir_.path()), names);
  for (const char* text : {"", "[]", "{\"version\": 2, \"steps\": []}", "{\"version\": 1, \"steps\": [\"../x\"]}",
                           "{\"version\": 1, \"steps\": [1]}", "{\"version\": 1}"}) {
    spill(dir_ / "index.json", text);
    const auto records = read_records(dir_.path());
    ASSERT_FALSE(records.ok()) << text;
    EXPECT_FALSE(records.error().remedy.empty());
    EXPECT_FALSE(retain_steps(dir_.path(), 1).ok()) << text;
  }
}

// Userlog C6: the order of writing decides, not numbers or times, and what this run did not write stays.
TEST_F(RetainSteps, TheLastWrittenStayWhateverTheirNumbersAndTimes) {
  save(50), save(10), save(30);
  fs::create_directories(dir_ / "step-00000099");         // of somebody else
  fs::create_directories(dir_ / "step-00000010.backup");  // no step
  fs::last_write_time(dir_ / step_name(50), fs::file_time_type::clock::now());
  ASSERT_TRUE(retain_steps(dir_.path(), 2).ok());
  EXPECT_FALSE(has(50));
  EXPECT_TRUE(has(10) && has(30) && has(99));
  EXPECT_TRUE(fs::exists(dir_ / "step-00000010.backup"));
  EXPECT_EQ(read_records(dir_.path())->size(), 2u);
  ASSERT_TRUE(retain_steps(dir_.path(), 0).ok());
  EXPECT_TRUE(has(10) && has(30));
}

TEST_F(RetainSteps, DamagedStepsAreNotCountedAmongThoseThatStay) {
  save(1), save(2), save(3);
  fs::remove(dir_ / "step-00000003/rank-00001.catalog");
  ASSERT_TRUE(retain_steps(dir_.path(), 1).ok());
  EXPECT_TRUE(has(2)) << "the newest complete step is never deleted";
  EXPECT_FALSE(has(1));
}

TEST_F(RetainSteps, ATreeGoesAndALinkIsNotFollowed) {
  save(1);
  fs::create_directory_symlink(dir_ / step_name(1), dir_ / "link");
  ASSERT_TRUE(remove_tree(dir_ / "link").ok());
  EXPECT_TRUE(fs::exists(dir_ / "step-00000001/state.json"));
  ASSERT_TRUE(remove_tree(dir_ / step_name(1)).ok());
  EXPECT_FALSE(has(1));
  EXPECT_TRUE(remove_tree(dir_ / "nowhere").ok());
}

}  // namespace
}  // namespace penteract::checkpoint
