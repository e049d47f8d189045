#include "penteract/checkpoint/step_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace penteract::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(StepName, ReadsBackAndTakesNoOther) {
  EXPECT_EQ(step_name(10), "step-00000010");
  for (const int64_t step : {int64_t{0}, int64_t{10}, int64_t{123456789}, INT64_MAX}) {
    EXPECT_EQ(parse_step_name(step_name(step)), step);
  }
  for (const char* name : {"", "step-", "step-10", "step-00000010.backup", "step-00000010.tmp", "step--0000001",
                           "step-0000001x", "step-000000010", "Step-00000010", "step-99999999999999999999"}) {
    EXPECT_EQ(parse_step_name(name), std::nullopt) << name;
  }
}

TEST(ListSteps, AscendingByNumberAndStepsAlone) {
  const TempDir dir;
  EXPECT_TRUE(list_steps(dir / "nowhere")->empty());
  for (const char* name : {"step-00000010", "step-00000002", "step-100000000", "step-00000007.tmp", "other"})
    fs::create_directories(dir / name);
  EXPECT_EQ(*list_steps(dir.path()), (std::vector<int64_t>{2, 10, 100000000}));
  spill(dir / "file", "x");
  EXPECT_EQ(list_steps(dir / "file").error().code, ErrorCode::file_unreadable);
}

class ReadStep : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(write_step(dir_.path(), 10, 2, 100).ok()); }
  ErrorCode refusal() const {
    const auto contents = read_step(step_);
    EXPECT_FALSE(contents.ok());
    return contents.ok() ? ErrorCode::defect : contents.error().code;
  }
  TempDir dir_;
  std::string step_ = dir_ / "step-00000010";
};

TEST_F(ReadStep, GivesStateAndCatalogsInRankOrder) {
  const auto contents = read_step(step_);
  ASSERT_TRUE(contents.ok()) << contents.error().message();
  EXPECT_EQ(contents->file.state.step, 10);
  ASSERT_EQ(contents->catalogs.size(), 2u);
  EXPECT_EQ(contents->catalogs[1].rank, 1);
}

TEST_F(ReadStep, WhatIsAbsentIsIncomplete) {
  for (const char* name : {"rank-00001.safetensors", "rank-00000.catalog", "state.json"}) {
    fs::remove(fs::path(step_) / name);
    EXPECT_EQ(refusal(), ErrorCode::checkpoint_incomplete) << name;
    EXPECT_THAT(read_step(step_).error().culprit, HasSubstr(name));
  }
  EXPECT_EQ(read_step(dir_ / "nowhere").error().code, ErrorCode::checkpoint_missing);
}

TEST_F(ReadStep, PartsOfAnotherStepOrRankAreDamage) {
  ASSERT_TRUE(write_step(dir_.path(), 20, 2, 100).ok());
  const std::string other = dir_ / "step-00000020";
  const std::string catalog = "/rank-00000.catalog", good = slurp(step_ + catalog);
  spill(step_ + catalog, slurp(other + catalog));  // another step
  EXPECT_EQ(refusal(), ErrorCode::checkpoint_damaged);
  spill(step_ + catalog, slurp(step_ + "/rank-00001.catalog"));  // another rank
  EXPECT_EQ(refusal(), ErrorCode::checkpoint_damaged);
  spill(step_ + catalog, good);
  EXPECT_TRUE(read_step(step_).ok());
  const std::string data = step_ + "/rank-00001.safetensors";
  fs::resize_file(data, fs::file_size(data) - 1);
  EXPECT_EQ(refusal(), ErrorCode::checkpoint_damaged);
}

}  // namespace
}  // namespace penteract::checkpoint
