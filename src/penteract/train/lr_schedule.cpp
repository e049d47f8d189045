#include "penteract/train/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "penteract/base/check.h"

namespace penteract::train {
namespace {

// The part of the way from `first` to the last step, in [0, 1].
double progress(int64_t step, int64_t first, int64_t num_steps) {
  if (step <= first) return 0;  // the peak wins where it is the last step too
  return std::clamp(static_cast<double>(step - first) / static_cast<double>(num_steps - first), 0.0, 1.0);
}

}  // namespace

double learning_rate(const spec::OptimizerSpec& o, int64_t num_steps, int64_t step) {
  PENT_CHECK_GE(step, 1);
  if (step <= o.warmup_steps) return o.lr * static_cast<double>(step) / static_cast<double>(o.warmup_steps);
  // Without a warm-up the peak belongs to step 1.
  const int64_t peak = std::max<int64_t>(1, o.warmup_steps);
  switch (o.schedule) {
    case spec::LrSchedule::constant: return o.lr;
    case spec::LrSchedule::linear: return o.lr + (o.min_lr - o.lr) * progress(step, peak, num_steps);
    case spec::LrSchedule::cosine:
      return o.min_lr + (o.lr - o.min_lr) / 2 * (1 + std::cos(std::numbers::pi * progress(step, peak, num_steps)));
    case spec::LrSchedule::wsd: {
      const int64_t decay_from = std::max(peak, num_steps - std::max<int64_t>(1, num_steps / 5));
      return o.lr + (o.min_lr - o.lr) * progress(step, decay_from, num_steps);
    }
  }
  PENT_CHECK(false, "schedule {}", static_cast<int>(o.schedule));
}

}  // namespace penteract::train
