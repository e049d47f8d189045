#include "penteract/train/metrics.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "penteract/base/file.h"
#include "penteract/base/json.h"
#include "penteract/base/text.h"

namespace penteract::train {
namespace {

class Metrics : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("penteract-metrics-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "metrics.jsonl").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write_steps(int64_t first, int64_t last, int64_t resume) {
    auto log = MetricsLog::open(path_, resume);
    ASSERT_TRUE(log.ok());
    for (int64_t step = first; step <= last; ++step) {
      StepLine line;
      line.step = step;
      line.result.loss = 1.0 / static_cast<double>(step);
      ASSERT_TRUE(log->append(line).ok());
    }
  }

  std::vector<int64_t> steps() {
    std::vector<int64_t> out;
    for (const auto& line : split_text(trim(*read_file(path_)), '\n'))
      out.push_back((*parse_json(line, path_))["step"]);
    return out;
  }

  std::filesystem::path folder_;
  std::string path_;
};

// Userlog F6: each step stands once, also after a crash between checkpoints.
TEST_F(Metrics, AResumeCutsLaterLinesAndATornLastOne) {
  write_steps(1, 7, 0);
  std::ofstream(path_, std::ios::app) << "{\"step\": 8, \"lo";  // the process died here
  write_steps(6, 8, 5);
  EXPECT_EQ(steps(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

// What is lost is said, what is known stays, and a step that stands twice is kept once.
TEST_F(Metrics, ALostOrBinaryFileIsNoEnd) {
  write_steps(3, 4, 2);
  EXPECT_EQ(steps(), (std::vector<int64_t>{3, 4}));
  std::ofstream(path_) << std::string(100, '\0')
                       << "\xff\n{\"step\":2}\n{\"step\":2}\n{\"step\":1}\n{\"step\":\"3\"}\n[]\n\n";
  write_steps(5, 5, 4);
  EXPECT_EQ(steps(), (std::vector<int64_t>{2, 5}));
}

TEST_F(Metrics, AFreshStartBeginsAnew) {
  write_steps(1, 3, 0);
  write_steps(1, 2, 0);
  EXPECT_EQ(steps(), (std::vector<int64_t>{1, 2}));
}

TEST_F(Metrics, WhatIsNotFiniteIsNullAndTheLineStaysJson) {
  StepLine line;
  line.step = 3;
  line.result.loss = std::numeric_limits<double>::quiet_NaN();
  line.result.grad_norm = std::numeric_limits<double>::infinity();
  line.result.nonfinite = true;
  line.skipped = 2;
  const auto json = parse_json(line.json(), "line");
  ASSERT_TRUE(json.ok());
  EXPECT_TRUE((*json)["loss"].is_null());
  EXPECT_TRUE((*json)["grad_norm"].is_null());
  EXPECT_EQ((*json)["nonfinite"], true);
  EXPECT_EQ((*json)["skipped"], 2);
  EXPECT_FALSE(json->contains("eval_loss"));
}

}  // namespace
}  // namespace penteract::train
