#include "penteract/schedule/action.h"

#include <fmt/format.h>

#include <algorithm>

#include "penteract/base/text.h"

namespace penteract::schedule {
namespace {

using enum ActionKind;

// Appends the actions of one micro-batch around its compute action, leaving out what the ends of the pipeline lack.
struct Builder {
  int pp;
  int stage;
  ActionList list;

  void forward_of(int micro_batch) {
    if (stage > 0) list.push_back({receive_forward, micro_batch, stage});
    list.push_back({forward, micro_batch, stage});
    if (stage + 1 < pp) list.push_back({send_forward, micro_batch, stage});
  }
  void backward_of(int micro_batch) {
    if (stage + 1 < pp) list.push_back({receive_backward, micro_batch, stage});
    list.push_back({backward, micro_batch, stage});
    if (stage > 0) list.push_back({send_backward, micro_batch, stage});
  }
};

ActionList one_forward_one_backward(int pp, int rank, int num_micro_batches) {
  Builder builder{pp, rank, {}};
  const int num_warmup = std::min(pp - rank - 1, num_micro_batches);
  for (int i = 0; i < num_warmup; ++i) builder.forward_of(i);
  for (int i = num_warmup; i < num_micro_batches; ++i) {
    builder.forward_of(i);
    builder.backward_of(i - num_warmup);
  }
  for (int i = num_micro_batches - num_warmup; i < num_micro_batches; ++i) builder.backward_of(i);
  return std::move(builder.list);
}

}  // namespace

std::string_view action_name(ActionKind kind) {
  switch (kind) {
    case receive_forward: return "receive_forward";
    case forward: return "forward";
    case send_forward: return "send_forward";
    case receive_backward: return "receive_backward";
    case backward: return "backward";
    case send_backward: return "send_backward";
    case weight_gradient: return "weight_gradient";
  }
  return "?";
}

std::string to_string(const Action& action) {
  return fmt::format("{} of micro-batch {} on stage {}", action_name(action.kind), action.micro_batch, action.stage);
}

Result<std::vector<ActionList>> make_schedule(const std::string& name, int pp, int vpp, int num_micro_batches) {
  if (name != "1f1b" && name != "forward_only") {
    const std::string near = nearest_word(name, {"1f1b", "forward_only"});
    return Error{ErrorCode::schedule_illegal, fmt::format("there is no schedule \"{}\"", name), "layout.schedule",
                 near.empty() ? "the schedules are 1f1b and forward_only" : fmt::format("did you mean {}?", near)};
  }
  if (vpp != 1) {
    return Error{ErrorCode::schedule_illegal,
                 fmt::format("schedule {} runs one virtual stage a rank, not {}", name, vpp), "layout.vpp",
                 "set vpp = 1"};
  }
  if (pp < 1 || num_micro_batches < 1) {
    return Error{ErrorCode::schedule_illegal,
                 fmt::format("pp = {} with {} micro-batches: both must be at least 1", pp, num_micro_batches),
                 "schedule " + name, "batch.global is micro · dp · the number of micro-batches"};
  }
  std::vector<ActionList> lists;
  for (int rank = 0; rank < pp; ++rank) {
    if (name == "1f1b") {
      lists.push_back(one_forward_one_backward(pp, rank, num_micro_batches));
    } else {
      Builder builder{pp, rank, {}};
      for (int i = 0; i < num_micro_batches; ++i) builder.forward_of(i);
      lists.push_back(std::move(builder.list));
    }
  }
  return lists;
}

}  // namespace penteract::schedule
