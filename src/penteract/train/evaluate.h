// Mean loss over held-out windows, each at most once, weighted by tokens. Thread-safety: a rank's own thread.
#pragma once

#include <atomic>

#include "penteract/data/windows.h"
#include "penteract/model/engine.h"

namespace penteract::train {

struct EvalSummary {
  double loss = 0;
  int64_t target_tokens = 0;
  int64_t num_windows = 0;
  bool interrupted = false;  // some rank asked to stop: the loss is of no use
};

// The first max_windows windows in order (0: all), whatever the batch of the layout; the last batch may be short.
// `stop` (or null) is looked at before each batch; one rank that asks stops all. COLLECTIVE: world.
EvalSummary evaluate(model::Engine& engine, const data::EvalWindows& windows, int64_t max_windows,
                     const std::atomic<bool>* stop = nullptr);

}  // namespace penteract::train
