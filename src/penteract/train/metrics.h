// metrics.jsonl: one object a step, each step once. A step's line is written before that step's checkpoint commits; a
// resume cuts what came later and a torn last line. Thread-safety: one thread's (rank 0).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "penteract/base/result.h"
#include "penteract/model/engine.h"

namespace penteract::train {

struct StepLine {
  int64_t step = 0;
  model::StepResult result;
  double lr = 0;
  int64_t tokens = 0;  // targets seen so far
  double tokens_per_s = 0;
  double tflops = 0;  // a rank
  double step_ms = 0;
  int64_t skipped = 0;           // so far
  int64_t memory_max_bytes = 0;  // worst rank
  std::optional<double> eval_loss, test_loss;

  std::string json() const;  // one line; what is not finite stands as null
};

class MetricsLog {
 public:
  // Keeps the lines up to `last_step` of an existing file (0: none), whole ones only, each step once. What is not there
  // of the steps before is a warning: the numbers of a run are not worth its end.
  static Result<MetricsLog> open(const std::string& path, int64_t last_step);
  // Adds the line and makes it durable.
  Status append(const StepLine& line);

 private:
  explicit MetricsLog(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace penteract::train
