// Pipeline schedules as lists of actions, one list a pipeline rank: made here, checked by simulator.h, run by
// parallel/'s executor. Sends are asynchronous, receives block. Thread-safety: value types, pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "penteract/base/result.h"

namespace penteract::schedule {

enum class ActionKind {
  receive_forward,  // the activation of the stage before
  forward,
  send_forward,      // to the stage after
  receive_backward,  // the gradient of the stage after
  backward,          // input gradient; weight gradients too, unless the list holds weight_gradient for the pair
  send_backward,     // to the stage before
  weight_gradient,   // the weight gradients that a backward left queued
};

std::string_view action_name(ActionKind kind);

struct Action {
  ActionKind kind;
  int micro_batch;  // 0 .. num_micro_batches - 1
  int stage;        // virtual stage: 0 .. pp·vpp - 1; stage s lives on pipeline rank s % pp
  bool operator==(const Action&) const = default;
};

std::string to_string(const Action& action);  // "forward of micro-batch 3 on stage 1"

using ActionList = std::vector<Action>;

// The lists of the pp ranks of a pipeline, in rank order.
//   "1f1b"          one forward, one backward: rank p runs min(pp - p - 1, m) warm-up forwards and holds at most
//                   min(pp - p, m) activations (PipeDream-Flush; Narayanan et al. 2021, section 2.2)
//   "forward_only"  evaluation: forwards alone
// pp and num_micro_batches are at least 1; num_micro_batches may be smaller than pp. A pipeline of one stage neither
// sends nor receives. Errors: schedule_illegal for an unknown name, vpp > 1, or numbers below 1.
Result<std::vector<ActionList>> make_schedule(const std::string& name, int pp, int vpp, int num_micro_batches);

}  // namespace penteract::schedule
