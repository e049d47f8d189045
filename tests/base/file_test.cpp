#include "penteract/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "penteract/base/json.h"
#include "penteract/base/log.h"

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

TEST_F(Files, AppendAddsToTheEndAndMakesWhatIsAbsent) {
  ASSERT_TRUE(append_file(path("a"), "one\n").ok());
  ASSERT_TRUE(append_file(path("a"), "two\n").ok());
  EXPECT_EQ(*read_file(path("a")), "one\ntwo\n");
  EXPECT_EQ(append_file(path("b"), "x", Absent::error).error().code, ErrorCode::storage_write);
  EXPECT_FALSE(fs::exists(path("b")));
  EXPECT_EQ(append_file(folder_.string(), "x").error().code, ErrorCode::storage_write);
  const Status full = append_file("/dev/full", "x");
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::storage_full);
}

TEST_F(Files, LeftoversOfTheDeadGoAndFilesOfTheLivingStay) {
  for (const char* name : {"a.tmp-1-0", "a.bin.tmp-77-12", "b.tmp-1-0", "a.tmp-1", "a.tmp-x-1", "a.tmp", ".tmp-1-1"})
    std::ofstream(path(name)) << "x";
  fs::create_directories(path("a.tmp-5-5"));
  auto writer = FileWriter::create(path("a.tmp-1-1"));
  ASSERT_TRUE(writer.ok());
  remove_leftovers(folder_.string(), "a");
  const auto names = [&] {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_)) out.insert(entry.path().filename().string());
    return out;
  };
  EXPECT_EQ(names(), (std::set<std::string>{"b.tmp-1-0", "a.tmp-1", "a.tmp-x-1", "a.tmp", ".tmp-1-1", "a.tmp-5-5",
                                            "a.tmp-1-1"}));
  ASSERT_TRUE(writer->write("whole", 5).ok());
  ASSERT_TRUE(writer->sync().ok());
  EXPECT_EQ(*read_file(path("a.tmp-1-1")), "whole");
  remove_leftovers(folder_.string());
  EXPECT_TRUE(fs::exists(path("a.tmp-1-1"))) << "until it has its last name it is the writer's";
  { const FileWriter ended = std::move(*writer); }
  remove_leftovers(folder_.string());
  EXPECT_EQ(names(), (std::set<std::string>{"a.tmp-1", "a.tmp-x-1", "a.tmp", ".tmp-1-1", "a.tmp-5-5"}));
  remove_leftovers(path("nowhere"));
}

TEST_F(Files, ALogFileTakesTheLinesOfItsThread) {
  {
    const auto log = LogFile::open(path("log"));
    ASSERT_TRUE(log.ok());
    log_debug("hidden on the terminal");
    log_line(LogLevel::debug, "escape \x1b[31m");
    (*log)->write("for the file alone");
    std::thread([] { log_debug("another thread"); }).join();
  }
  log_debug("afterwards");
  const std::string text = *read_file(path("log"));
  EXPECT_THAT(text, testing::MatchesRegex("20..-..-..T..:..:..Z hidden on the terminal\n.*Z escape \\\\x1b\\[31m\n"
                                          ".*Z for the file alone\n"));
  const auto again = LogFile::open(path("log"));
  (*again)->write("x");
  EXPECT_TRUE(read_file(path("log"))->starts_with(text));
}

TEST(JsonFiles, MessagesAreInPlainWordsWithThePlace) {
  const auto what = [](const std::string& text) { return parse_json(text, "f").error().what; };
  EXPECT_EQ(what(""), "is not JSON: it ends too early");
  EXPECT_EQ(what("{\"a\": "), "is not JSON: it ends too early");
  EXPECT_EQ(what("{\"a\": nope}"), "is not JSON: column 8: \"ope}\" is not expected there");
  EXPECT_EQ(what("{\"a\": 1,\n \"b\" 2}\n"), "is not JSON: line 2, column 6: \"2}\\n\" is not expected there");
  EXPECT_EQ(what("\x1b[31m"), "is not JSON: column 1: \"\\x1b[31m\" is not expected there");
  EXPECT_THAT(what("{\"a\": 1e999}"), testing::HasSubstr("out of range"));
  for (const char* text : {"{", "[1,", "\"\xff\"", "\"\\ud800\"", "1e999", "{\"a\":1,\"a\":2}"}) {
    EXPECT_EQ(what(text).find("json."), std::string::npos) << what(text);
    EXPECT_EQ(what(text).find("parse"), std::string::npos) << what(text);
  }
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
