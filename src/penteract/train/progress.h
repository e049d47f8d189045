// The line a step that a person watches: loss, speed, time left. Thread-safety: one thread's (rank 0).
#pragma once

#include "penteract/train/metrics.h"

namespace penteract::train {

class Progress {
 public:
  void step(const StepLine& line, int64_t num_steps);

 private:
  double mean_step_ms_ = 0;  // exponential mean, for the time left
};

}  // namespace penteract::train
