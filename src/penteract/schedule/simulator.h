// Runs the action lists of a pipeline on paper: proves them complete, ordered and free of deadlock, and tells their
// peak in-flight activations, time and bubble. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "penteract/base/result.h"
#include "penteract/schedule/action.h"

namespace penteract::schedule {

// Time of one action in any unit. Where a list defers weight gradients, `backward` is the input gradient alone.
struct Costs {
  double forward = 1.0;
  double backward = 2.0;
  double weight = 1.0;    // of a weight_gradient action
  double transfer = 0.0;  // from a send to the moment its receive can complete
};

struct RankTimeline {
  int peak_in_flight = 0;  // most micro-batches with a forward and no finished backward (weight gradient, if deferred)
  double busy = 0.0;       // time in compute actions
  std::vector<double> start;  // of each action of the list
  std::vector<double> end;
};

struct SimulationResult {
  std::vector<RankTimeline> ranks;
  double makespan = 0.0;
  double bubble_fraction = 0.0;  // 1 - busy / (ranks · makespan)
};

// Lists with any backward are training lists: each (micro-batch, stage) needs one forward and one backward, and
// weight_gradient for all or none. Without any they are evaluation lists. Messages between a pair of ranks must be
// received in the order they are sent. The numbers of stages and micro-batches are read from the lists.
// Errors: schedule_illegal naming the rank and the index of the action: wrong rank, double, missing, before what it
// needs, a send or receive without its counterpart, or a deadlock (with what each waiting rank waits for).
Result<SimulationResult> simulate(const std::vector<ActionList>& lists, const Costs& costs = {});

}  // namespace penteract::schedule
