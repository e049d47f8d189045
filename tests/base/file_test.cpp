#include "penteract/base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "penteract/base/json.h"

namespace penteract {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("penteract-files-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const char* name) { return (folder_ / name).string(); }
  fs::path folder_;
};

TEST_F(Files, AtomicWriteReplacesAndLeavesNothingElse) {
  ASSERT_TRUE(write_file_atomic(path("a"), "one").ok());
  ASSERT_TRUE(write_file_atomic(path("a"), "two").ok());
  EXPECT_EQ(*read_file(path("a")), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(Files, AFailedWriteLeavesTheOldOne) {
  fs::create_directories(path("target"));  // a folder cannot be replaced by a file
  const Status status = write_file_atomic(path("target"), "x");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::storage_write);
  EXPECT_TRUE(fs::is_directory(path("target")));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(Files, ErrorsNameTheFile) {
  const auto missing = read_file(path("absent"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::file_missing);
  EXPECT_EQ(missing.error().culprit, path("absent"));
  EXPECT_EQ(read_file(folder_.string()).error().code, ErrorCode::file_unreadable);
  ASSERT_TRUE(write_file_atomic(path("big"), std::string(100, 'x')).ok());
  EXPECT_EQ(read_file(path("big"), 99).error().code, ErrorCode::file_malformed);
}

TEST_F(Files, ReadsPastTheEndAreRefusedAlsoWhereTheSumOverflows) {
  ASSERT_TRUE(write_file_atomic(path("a"), "0123456789").ok());
  const auto file = FileReader::open(path("a"));
  ASSERT_TRUE(file.ok());
  char out[4];
  EXPECT_TRUE(file->read_at(6, out, 4).ok());
  EXPECT_EQ(std::string(out, 4), "6789");
  EXPECT_FALSE(file->read_at(7, out, 4).ok());
  EXPECT_FALSE(file->read_at(UINT64_MAX - 1, out, 4).ok());
}

TEST(JsonFiles, HostileInputIsRefused) {
  EXPECT_FALSE(parse_json("{\"a\": 1, \"a\": 2}", "f").ok());
  EXPECT_FALSE(parse_json("{\"a\": ", "f").ok());
  EXPECT_FALSE(parse_json(std::string(100000, '['), "f").ok());
  EXPECT_TRUE(parse_json("{\"a\": {\"a\": [1]}, \"b\": {\"a\": 2}}", "f").ok());
  EXPECT_EQ(parse_json("nope", "file.json").error().culprit, "file.json");
}

}  // namespace
}  // namespace penteract
