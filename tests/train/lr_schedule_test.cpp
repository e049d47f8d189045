#include "penteract/train/lr_schedule.h"

#include <gtest/gtest.h>

#include <vector>

namespace penteract::train {
namespace {

spec::OptimizerSpec spec_of(spec::LrSchedule schedule) {
  spec::OptimizerSpec o;
  o.lr = 1.0, o.min_lr = 0.1, o.warmup_steps = 4, o.schedule = schedule;
  return o;
}

std::vector<double> rates(spec::LrSchedule schedule) {
  std::vector<double> out;
  for (int64_t step = 1; step <= 10; ++step) out.push_back(learning_rate(spec_of(schedule), 10, step));
  return out;
}

// Written by hand from the formulas of interface.md: step 1 above zero, the peak at the last warm-up step, min_lr at the
// last step (userlog E6).
TEST(LrSchedule, GoldenNumbers) {
  const std::vector<std::pair<spec::LrSchedule, std::vector<double>>> golden = {
      {spec::LrSchedule::constant, {0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 1}},
      {spec::LrSchedule::linear, {0.25, 0.5, 0.75, 1, 0.85, 0.7, 0.55, 0.4, 0.25, 0.1}},
      {spec::LrSchedule::cosine, {0.25, 0.5, 0.75, 1, 0.939711431702997, 0.775, 0.55, 0.325, 0.160288568297003, 0.1}},
      {spec::LrSchedule::wsd, {0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 0.55, 0.1}}};
  for (const auto& [schedule, expected] : golden) {
    const auto seen = rates(schedule);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(seen[i], expected[i], 1e-12) << spec::lr_schedule_name(schedule) << " step " << i + 1;
    }
  }
}

TEST(LrSchedule, WithoutWarmupThePeakIsStepOne) {
  auto o = spec_of(spec::LrSchedule::linear);
  o.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(learning_rate(o, 10, 1), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(o, 10, 10), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(o, 1, 1),
                   1.0);  // the peak and the last step: a rate of min_lr = 0 would train nothing
}

}  // namespace
}  // namespace penteract::train
