#include "penteract/checkpoint/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fixture.h"
#include "penteract/base/json.h"
#include "penteract/base/text.h"
#include "penteract/checkpoint/inspect.h"

namespace penteract::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Verify : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(write_step(dir_.path(), 10, 3, 100).ok()); }
  TempDir dir_;
  std::string step_ = dir_ / "step-00000010";
};

TEST_F(Verify, AWholeStepIsReadToTheLastByte) {
  const auto report = verify(step_);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->ok()) << report->text();
  EXPECT_EQ(report->step, 10);
  EXPECT_EQ(report->num_parts, 3);
  EXPECT_EQ(report->num_tensors, 6);
  uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(step_)) {
    if (entry.path().filename() != "state.json") bytes += entry.file_size();
  }
  EXPECT_EQ(report->num_bytes, bytes);
  EXPECT_THAT(report->text(), HasSubstr("every byte is as it was written"));
  EXPECT_EQ(parse_json(report->json(), "json")->at("ok"), true);
}

TEST_F(Verify, EveryFlippedByteOfEveryFileIsFoundAndItsFileNamed) {
  for (const auto& entry : fs::directory_iterator(step_)) {
    const std::string path = entry.path(), good = slurp(path);
    for (size_t at = 0; at < good.size(); at += 29) {
      flip_byte(path, at);
      const auto report = verify(step_);
      ASSERT_TRUE(report.ok());
      ASSERT_FALSE(report->ok()) << path << ' ' << at;
      EXPECT_THAT(report->text(), HasSubstr(entry.path().filename().string()));
      spill(path, good);
    }
  }
}

TEST_F(Verify, AFolderThatHoldsNothingOfAStepIsNoCheckpoint) {
  fs::create_directories(dir_ / "texts");
  spill(dir_ / "texts/a.txt", "a");
  for (const auto& path : {dir_ / "texts", dir_ / "texts/a.txt", dir_ / "nowhere"}) {
    const auto report = verify(path);
    ASSERT_FALSE(report.ok()) << path;
    EXPECT_EQ(report.error().code, ErrorCode::checkpoint_missing) << path;
    EXPECT_FALSE(report.error().remedy.empty());
  }
  // What is left of a step, by its parts or by its name, is damage.
  fs::rename(step_, dir_ / "copy");
  fs::remove(dir_ / "copy/state.json");
  fs::create_directories(step_);
  for (const auto& path : {dir_ / "copy", step_, step_ + "/"}) {
    const auto report = verify(path);
    ASSERT_TRUE(report.ok()) << path;
    EXPECT_TRUE(report->incomplete()) << path;
  }
}

TEST_F(Verify, NamesAllThatIsWrongInOneCall) {
  fs::remove(step_ + "/rank-00000.catalog");
  flip_byte(step_ + "/rank-00001.safetensors", fs::file_size(step_ + "/rank-00001.safetensors") - 1);
  fs::resize_file(step_ + "/rank-00002.safetensors", 64);
  const auto report = verify(step_);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->problems.size(), 3u);
  EXPECT_TRUE(report->incomplete());
  const std::string text = report->text();
  EXPECT_THAT(text, HasSubstr("rank-00000.catalog: is missing"));
  EXPECT_THAT(text, HasSubstr("rank-00001.safetensors, "));
  EXPECT_THAT(text, HasSubstr("rank-00002.safetensors: has 64 bytes"));
  const Json json = *parse_json(report->json(), "json");
  EXPECT_EQ(json.at("problems").size(), 3u);
  EXPECT_EQ(json.at("problems")[0].at("error"), "checkpoint_incomplete");
}

TEST_F(Verify, SwappedDataFilesAreFound) {
  fs::rename(step_ + "/rank-00001.safetensors", step_ + "/x");
  fs::rename(step_ + "/rank-00002.safetensors", step_ + "/rank-00001.safetensors");
  fs::rename(step_ + "/x", step_ + "/rank-00002.safetensors");
  const auto report = verify(step_);
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(report->text(), HasSubstr("rank-00001.safetensors"));
  EXPECT_THAT(report->text(), HasSubstr("rank-00002.safetensors"));
}

TEST_F(Verify, AFolderThatIsNotThereIsAnError) {
  EXPECT_EQ(verify(dir_ / "step-00000011").error().code, ErrorCode::checkpoint_missing);
  fs::remove(step_ + "/state.json");
  EXPECT_TRUE(verify(step_)->incomplete());
}

TEST_F(Verify, InspectDescribesStepFolderAndFile) {
  const auto step = describe(step_);
  ASSERT_TRUE(step.ok()) << step.error().message();
  const Json json = *parse_json(step->json, "json");
  EXPECT_EQ(json.at("kind"), "checkpoint");
  EXPECT_EQ(json.at("step"), 10);
  EXPECT_EQ(json.at("layout"), "tp=1,dp=2");
  const auto& tensors = json.at("tensors");
  EXPECT_EQ(tensors.size(), 6u);
  const auto embed = std::ranges::find_if(tensors, [](const Json& t) { return t.at("name") == "master.embed.weight"; });
  ASSERT_NE(embed, tensors.end());
  EXPECT_EQ(embed->at("shape"), Json({7, 5}));
  EXPECT_EQ(embed->at("dtype"), "F32");
  EXPECT_EQ(embed->at("pieces")[0].at("rank"), 0);
  EXPECT_THAT(step->text, HasSubstr("master.embed.weight"));

  const auto file = describe(step_ + "/rank-00000.safetensors");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(parse_json(file->json, "json")->at("kind"), "safetensors");
  EXPECT_THAT(file->text, HasSubstr("master.experts.up[0:1, 0:3, 0:2]"));

  fs::create_directories(dir_ / "step-00000020");
  const auto folder = describe(dir_.path());
  ASSERT_TRUE(folder.ok());
  EXPECT_THAT(folder->text, HasSubstr("step-00000010  3"));
  EXPECT_THAT(folder->text, HasSubstr("state.json: is missing"));
  EXPECT_EQ(parse_json(folder->json, "json")->at("steps")[1].at("complete"), false);
  for (const auto& d : {*step, *file, *folder}) {
    // Paths are as long as they are; every other line keeps to 100 columns.
    for (const std::string& line : split_text(d.text, '\n')) EXPECT_TRUE(line.size() <= 100 || line[0] == '/') << line;
  }
  EXPECT_FALSE(is_describable(dir_ / "latest"));
  EXPECT_EQ(describe(dir_ / "latest").error().code, ErrorCode::checkpoint_missing);
}

}  // namespace
}  // namespace penteract::checkpoint
