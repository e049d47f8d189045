#include "penteract/checkpoint/find.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace penteract::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Found {
  std::string name;  // "" for none, "error: ..." for an error
  std::vector<std::string> notes;
};

Found find_in(const std::string& dir, Depth depth = Depth::bytes) {
  Found found;
  const auto result = find_newest(dir, &found.notes, depth);
  if (!result.ok()) {
    found.name = "error: " + result.error().message();
  } else if (result->has_value()) {
    found.name = fs::path(**result).filename();
  }
  return found;
}

class Find : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_step(dir_.path(), 10, 2, 10).ok());
    ASSERT_TRUE(write_step(dir_.path(), 20, 2, 20).ok());
  }
  TempDir dir_;
};

TEST_F(Find, TheNewestCompleteOneWithoutRemarks) {
  const Found found = find_in(dir_.path());
  EXPECT_EQ(found.name, "step-00000020");
  EXPECT_TRUE(found.notes.empty()) << found.notes[0];
}

TEST_F(Find, NothingWhereThereIsNothing) {
  const TempDir empty;
  EXPECT_EQ(find_in(empty.path()).name, "");
  EXPECT_EQ(find_in(empty / "absent").name, "");
  spill(empty / "file", "");
  EXPECT_THAT(find_in(empty / "file").name, HasSubstr("error:"));
}

TEST_F(Find, LatestMayBeLostOrBehind) {  // row C4
  fs::remove(dir_ / "latest");
  Found found = find_in(dir_.path());
  EXPECT_EQ(found.name, "step-00000020");
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("latest: cannot be read")));
  spill(dir_ / "latest", "step-00000010\n");
  found = find_in(dir_.path());
  EXPECT_EQ(found.name, "step-00000020");
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("says \"step-00000010\"; step-00000020 is the newest")));
}

TEST_F(Find, IncompleteOnesAreSkippedAloud) {  // rows C2 and C5
  fs::remove(dir_ / "step-00000020/rank-00001.safetensors");
  fs::create_directories(dir_ / "step-00000030");
  fs::create_directories(dir_ / "step-00000040.tmp");
  for (const Depth depth : {Depth::sizes, Depth::bytes}) {
    const Found found = find_in(dir_.path(), depth);
    EXPECT_EQ(found.name, "step-00000010");
    ASSERT_EQ(found.notes.size(), 4u);
    EXPECT_THAT(found.notes[0], HasSubstr("step-00000040.tmp: a save that did not finish"));
    EXPECT_THAT(found.notes[1], HasSubstr("step-00000030: skipped, it is incomplete"));
    EXPECT_THAT(found.notes[2], HasSubstr("rank-00001.safetensors: is missing"));
    EXPECT_THAT(found.notes[3], HasSubstr("latest"));
  }
}

TEST_F(Find, ADamagedByteIsSkippedAloudWhenBytesAreRead) {
  const std::string data = dir_ / "step-00000020/rank-00001.safetensors";
  flip_byte(data, fs::file_size(data) - 1);
  EXPECT_EQ(find_in(dir_.path(), Depth::sizes).name, "step-00000020");
  const Found found = find_in(dir_.path());
  EXPECT_EQ(found.name, "step-00000010");
  EXPECT_THAT(found.notes.at(0), HasSubstr("step-00000020: skipped, it is damaged"));
}

// Steps without their parts: a loss where index.json says that this run committed them, else somebody's leftovers.
TEST_F(Find, OnlyDamagedOrLostOnesAreAnErrorOnlyForeignIncompleteOnesAreNone) {
  fs::remove(dir_ / "step-00000010/state.json");
  fs::remove(dir_ / "step-00000020/rank-00000.catalog");
  EXPECT_THAT(find_in(dir_.path()).name, HasSubstr("error:"));
  fs::remove(dir_ / "index.json");
  EXPECT_EQ(find_in(dir_.path()).name, "");
  ASSERT_TRUE(write_step(dir_.path(), 20, 2, 20).ok());
  flip_byte(dir_ / "step-00000020/state.json", 50);
  EXPECT_THAT(find_in(dir_.path()).name, HasSubstr("error:"));
  EXPECT_THAT(find_in(dir_.path()).name, HasSubstr("state.json"));
}

TEST_F(Find, ForeignNamesAreNoSteps) {  // row C6
  for (const char* name :
       {"step-00000100.backup", "step-100", "step-000000100", "step-0000010x", "step-", "step--0000001"}) {
    fs::copy(dir_ / "step-00000010", dir_ / name, fs::copy_options::recursive);
  }
  const Found found = find_in(dir_.path());
  EXPECT_EQ(found.name, "step-00000020");
  EXPECT_TRUE(found.notes.empty());
}

TEST_F(Find, AStepCopiedFromAnotherRunIsFound) {
  const TempDir other;
  fs::copy(dir_ / "step-00000020", other / "step-00000020", fs::copy_options::recursive);
  EXPECT_EQ(find_in(other.path()).name, "step-00000020");
}

TEST(StepName, RoundTrip) {
  for (const int64_t step : {int64_t{0}, int64_t{10}, int64_t{99999999}, int64_t{100000000}, INT64_MAX}) {
    EXPECT_EQ(parse_step_name(step_name(step)), step);
  }
  EXPECT_EQ(parse_step_name("step-99999999999999999999"), std::nullopt);
}

}  // namespace
}  // namespace penteract::checkpoint
