#include "penteract/checkpoint/step_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "fixture.h"
#include "penteract/checkpoint/reader.h"
#include "penteract/checkpoint/verify.h"

namespace penteract::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

bool is_whole(const std::string& step_dir, int64_t base) {
  const auto report = verify(step_dir);
  if (!report.ok() || !report->ok()) return false;
  const auto reader = Reader::open(step_dir);
  at::Tensor out = at::zeros({7, 5}, at::TensorOptions(at::kFloat));
  return reader.ok() && (*reader)->read("master.embed.weight", topology::Slice::whole({7, 5}), out).ok() &&
         out.equal(global_tensor({7, 5}, at::kFloat, base));
}

TEST(StepWriter, ThePartsOfAStepAndItsPointer) {
  const TempDir dir;
  ASSERT_TRUE(write_step(dir.path(), 10, 3, 100).ok());
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir / "step-00000010")) names.insert(entry.path().filename());
  EXPECT_THAT(names, ::testing::ElementsAre("rank-00000.catalog", "rank-00000.safetensors", "rank-00001.catalog",
                                            "rank-00001.safetensors", "rank-00002.catalog", "rank-00002.safetensors",
                                            "state.json"));
  EXPECT_EQ(slurp(dir / "latest"), "step-00000010\n");
  EXPECT_FALSE(fs::exists(dir / "step-00000010.tmp"));
  EXPECT_TRUE(is_whole(dir / "step-00000010", 100));
}

TEST(StepWriter, EqualStateGivesEqualBytes) {
  const TempDir a, b;
  ASSERT_TRUE(write_step(a.path(), 10, 2, 100).ok());
  ASSERT_TRUE(write_step(b.path(), 10, 2, 100).ok());
  int num_files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(a.path())) {
    if (!entry.is_regular_file()) continue;
    const std::string name = fs::relative(entry.path(), a.path());
    EXPECT_EQ(slurp(a / name), slurp(b / name)) << name;
    ++num_files;
  }
  EXPECT_EQ(num_files, 5 + 2);
}

// Row C2: what a crash left is replaced, whatever it is.
TEST(StepWriter, LeftoversAreReplaced) {
  const TempDir dir;
  ASSERT_TRUE(write_step(dir.path(), 5, 2, 50).ok());
  fs::create_directories(dir / "step-00000010");  // torn: no state.json
  spill(dir / "step-00000010/rank-00000.safetensors", "half");
  fs::create_directories(dir / "step-00000010.tmp");
  spill(dir / "step-00000010.tmp/rank-00007.safetensors", "half");
  ASSERT_TRUE(write_step(dir.path(), 10, 2, 100).ok());
  EXPECT_TRUE(is_whole(dir / "step-00000010", 100));
  EXPECT_FALSE(fs::exists(dir / "step-00000010/rank-00007.safetensors"));
  EXPECT_FALSE(fs::exists(dir / "step-00000010.tmp"));
  ASSERT_TRUE(write_step(dir.path(), 10, 3, 200).ok());  // over a whole one
  EXPECT_TRUE(is_whole(dir / "step-00000010", 200));
  EXPECT_FALSE(fs::exists(dir / "step-00000010.tmp"));
  spill(dir / "step-00000015.tmp", "a file where the folder goes");
  ASSERT_TRUE(write_step(dir.path(), 15, 1, 300).ok());
  EXPECT_TRUE(is_whole(dir / "step-00000005", 50));
}

TEST(StepWriter, TheTemporaryOfARecordedStepGoesAtTheNextSave) {
  const TempDir dir;
  ASSERT_TRUE(StepTransaction::begin(dir.path(), 10).ok());  // and the process dies
  fs::create_directories(dir / "step-00000077.tmp");         // of somebody else
  ASSERT_TRUE(write_step(dir.path(), 12, 1, 100).ok());
  EXPECT_FALSE(fs::exists(dir / "step-00000010.tmp"));
  EXPECT_TRUE(fs::exists(dir / "step-00000077.tmp"));
}

TEST(StepWriter, AFailedSaveLeavesNoTrace) {
  const TempDir dir;
  ASSERT_TRUE(write_step(dir.path(), 10, 2, 100).ok());
  const std::string records = slurp(dir / "index.json");
  auto transaction = StepTransaction::begin(dir.path(), 20);
  ASSERT_TRUE(transaction.ok());
  const std::string temporary = temporary_directory(dir.path(), 20);
  fs::remove_all(temporary);  // the folder vanishes under the writers
  const auto part = write_part(temporary, 20, 0, 1, test_pieces(0, 1, 100));
  ASSERT_FALSE(part.ok());
  EXPECT_EQ(part.error().code, ErrorCode::storage_write);
  EXPECT_THAT(part.error().message(), HasSubstr("rank-00000.safetensors"));
  transaction->abandon();
  EXPECT_EQ(slurp(dir / "index.json"), records);
  EXPECT_EQ(slurp(dir / "latest"), "step-00000010\n");
  EXPECT_TRUE(is_whole(dir / "step-00000010", 100));
  EXPECT_FALSE(fs::exists(dir / "step-00000020"));
}

TEST(StepWriter, AFolderThatCannotBeIsAStorageError) {
  const TempDir dir;
  spill(dir / "file", "");
  const auto begun = StepTransaction::begin(dir / "file/checkpoints", 1);
  ASSERT_FALSE(begun.ok());
  EXPECT_EQ(exit_code(begun.error().code), ExitCode::storage);
}

// Row C15: state that nobody saved, or that two ranks saved, is found before the commit.
TEST(StepWriter, PiecesThatDoNotCoverTheirTensorsAreNotCommitted) {
  const TempDir dir;
  ASSERT_TRUE(write_step(dir.path(), 10, 2, 100).ok());
  for (const bool twice : {false, true}) {
    auto transaction = StepTransaction::begin(dir.path(), 20);
    ASSERT_TRUE(transaction.ok());
    std::vector<PartRecord> parts;
    for (int rank = 0; rank < 2; ++rank) {
      auto pieces = test_pieces(twice ? 0 : rank, 2, 100);
      if (!twice && rank == 1) pieces.erase(pieces.begin());
      parts.push_back(*write_part(temporary_directory(dir.path(), 20), 20, rank, 2, pieces));
    }
    const Status status = transaction->commit(test_state(20, 2), parts);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, twice ? ErrorCode::checkpoint_malformed : ErrorCode::checkpoint_incomplete);
    EXPECT_THAT(status.error().message(), HasSubstr("tensor "));
    transaction->abandon();
    EXPECT_FALSE(fs::exists(dir / "step-00000020"));
    EXPECT_FALSE(fs::exists(dir / "step-00000020.tmp"));
  }
  EXPECT_EQ(slurp(dir / "latest"), "step-00000010\n");
}

// Row C6: only what the records list, by the order of writing, after the commit.
TEST(Retention, KeepsTheNewestCompleteAndForeignNames) {
  const TempDir dir;
  ASSERT_TRUE(write_step(dir.path(), 10, 1, 10, 2).ok());
  // Foreign: a backup, a stale higher step of another run, a file.
  fs::copy(dir / "step-00000010", dir / "step-00000100.backup", fs::copy_options::recursive);
  fs::copy(dir / "step-00000010", dir / "step-00000100", fs::copy_options::recursive);
  spill(dir / "notes.txt", "mine");
  ASSERT_TRUE(write_step(dir.path(), 20, 1, 20, 2).ok());
  // File times say the opposite of the truth.
  fs::last_write_time(dir / "step-00000010", fs::file_time_type::clock::now() + std::chrono::hours(1));
  ASSERT_TRUE(write_step(dir.path(), 30, 1, 30, 2).ok());
  const auto exists = [&](const char* name) { return fs::exists(dir / name); };
  EXPECT_FALSE(exists("step-00000010"));
  EXPECT_TRUE(exists("step-00000020") && exists("step-00000030"));
  EXPECT_TRUE(exists("step-00000100.backup") && exists("step-00000100") && exists("notes.txt"));
  // A later save under a lower number is the newest.
  ASSERT_TRUE(write_step(dir.path(), 15, 1, 15, 1).ok());
  EXPECT_TRUE(exists("step-00000015"));
  EXPECT_FALSE(exists("step-00000020") || exists("step-00000030"));
  EXPECT_TRUE(exists("step-00000100"));
}

TEST(Retention, DamagedStepsDoNotCountAsKept) {
  const TempDir dir;
  ASSERT_TRUE(write_step(dir.path(), 10, 1, 10).ok());
  ASSERT_TRUE(write_step(dir.path(), 20, 1, 20).ok());
  fs::remove(dir / "step-00000020/rank-00000.catalog");
  ASSERT_TRUE(write_step(dir.path(), 30, 1, 30, 2).ok());
  EXPECT_TRUE(fs::exists(dir / "step-00000010"));
  EXPECT_THAT(*read_records(dir.path()), ::testing::ElementsAre("step-00000010", "step-00000020", "step-00000030"));
}

TEST(Retention, AFailedSaveWithKeepOneDeletesNothing) {
  const TempDir dir;
  ASSERT_TRUE(write_step(dir.path(), 10, 1, 10, 1).ok());
  auto transaction = StepTransaction::begin(dir.path(), 20);
  ASSERT_TRUE(transaction.ok());
  transaction->abandon();
  ASSERT_TRUE(retain_steps(dir.path(), 1).ok());
  EXPECT_TRUE(is_whole(dir / "step-00000010", 10));
}

TEST(Retention, RecordsThatAreHostileDeleteNothing) {
  const TempDir dir;
  for (const char* text : {"{", "[]", R"({"version":1,"steps":["../outside"]})", R"({"version":2,"steps":[]})",
                           R"({"version":1,"steps":["step-1"]})", R"({"version":1,"steps":[7]})"}) {
    spill(dir / "index.json", text);
    const auto records = read_records(dir.path());
    ASSERT_FALSE(records.ok()) << text;
    EXPECT_EQ(records.error().code, ErrorCode::file_malformed);
    EXPECT_FALSE(retain_steps(dir.path(), 1).ok());
  }
}

}  // namespace
}  // namespace penteract::checkpoint
