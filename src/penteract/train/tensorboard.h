// The curves of metrics.jsonl as TensorBoard events: one file, one event a step, each step once. A step's event is
// written before that step's checkpoint commits; a resume cuts what came later and a torn last record.
// Thread-safety: one thread's (rank 0).
#pragma once

#include <cstdint>
#include <string>

#include "penteract/base/result.h"
#include "penteract/train/event_file.h"
#include "penteract/train/metrics.h"

namespace penteract::train {

class TensorBoardLog {
 public:
  // TensorBoard takes every file below a folder that has "tfevents" in its name.
  static constexpr const char* kFileName = "events.out.tfevents.penteract";

  // Makes `folder` where it is missing, and opens kFileName in it as EventFile::open does.
  static Result<TensorBoardLog> open(const std::string& folder, int64_t last_step);

  // Adds an event with a scalar for each number of line.json() that is finite as a float, under the same name, and
  // makes it durable. Floats have 24 bits: the exact counts stand in metrics.jsonl.
  Status append(const StepLine& line);

 private:
  explicit TensorBoardLog(EventFile file) : file_(std::move(file)) {}
  EventFile file_;
};

}  // namespace penteract::train
