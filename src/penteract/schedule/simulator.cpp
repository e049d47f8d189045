#include "penteract/schedule/simulator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <tuple>

namespace penteract::schedule {
namespace {

using enum ActionKind;

constexpr int kNumKinds = 7;

// What the lists say about the pipeline.
struct Shape {
  int num_ranks = 0;
  int num_stages = 0;
  int num_micro_batches = 0;
  bool training = false;
  bool deferred = false;  // weight gradients are actions of their own

  // Whether a pair (stage, micro-batch) has an action of this kind.
  bool expects(ActionKind kind, int stage) const {
    const bool sends = num_ranks > 1;
    switch (kind) {
      case receive_forward: return sends && stage > 0;
      case forward: return true;
      case send_forward: return sends && stage + 1 < num_stages;
      case receive_backward: return training && sends && stage + 1 < num_stages;
      case backward: return training;
      case send_backward: return training && sends && stage > 0;
      case weight_gradient: return training && deferred;
    }
    return false;
  }
};

Error illegal(int rank, size_t index, const std::string& what) {
  return {ErrorCode::schedule_illegal, what, fmt::format("pipeline rank {}, action {}", rank, index), ""};
}

Result<Shape> shape_of(const std::vector<ActionList>& lists) {
  Shape shape;
  shape.num_ranks = static_cast<int>(lists.size());
  size_t num_actions = 0;
  for (const ActionList& list : lists) num_actions += list.size();
  if (num_actions == 0) return Error{ErrorCode::schedule_illegal, "the lists hold no action", "schedule", ""};
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    for (size_t i = 0; i < lists[rank].size(); ++i) {
      const Action& a = lists[rank][i];
      // A complete list holds every smaller number too, so larger ones than actions are wrong in any case.
      if (a.stage < 0 || a.micro_batch < 0 || static_cast<size_t>(a.stage) >= num_actions ||
          static_cast<size_t>(a.micro_batch) >= num_actions) {
        return illegal(rank, i, fmt::format("{}: the number is out of range", to_string(a)));
      }
      if (a.stage % shape.num_ranks != rank) {
        return illegal(rank, i, fmt::format("{} belongs to rank {}", to_string(a), a.stage % shape.num_ranks));
      }
      shape.num_stages = std::max(shape.num_stages, a.stage + 1);
      shape.num_micro_batches = std::max(shape.num_micro_batches, a.micro_batch + 1);
      shape.deferred |= a.kind == weight_gradient;
      shape.training |= a.kind != receive_forward && a.kind != forward && a.kind != send_forward;
    }
  }
  shape.num_stages = (shape.num_stages + shape.num_ranks - 1) / shape.num_ranks * shape.num_ranks;
  return shape;
}

// Where each expected action of one rank stands in its list.
class Places {
 public:
  explicit Places(const Shape& shape) : shape_(shape) {}

  std::optional<size_t> find(ActionKind kind, int stage, int micro_batch) const {
    const auto it = places_.find({static_cast<int>(kind), stage, micro_batch});
    return it == places_.end() ? std::nullopt : std::optional<size_t>(it->second);
  }

  // What must stand before `a` in the same list.
  std::vector<Action> needs(const Action& a) const {
    const bool alone = shape_.num_ranks == 1;
    switch (a.kind) {
      case receive_forward: return {};
      case forward:
        if (a.stage == 0) return {};
        return {alone ? Action{forward, a.micro_batch, a.stage - 1} : Action{receive_forward, a.micro_batch, a.stage}};
      case send_forward: return {{forward, a.micro_batch, a.stage}};
      case receive_backward: return {};
      case backward: {
        std::vector<Action> before{{forward, a.micro_batch, a.stage}};
        if (a.stage + 1 < shape_.num_stages) {
          before.push_back(alone ? Action{backward, a.micro_batch, a.stage + 1}
                                 : Action{receive_backward, a.micro_batch, a.stage});
        }
        return before;
      }
      case send_backward: return {{backward, a.micro_batch, a.stage}};
      case weight_gradient: return {{backward, a.micro_batch, a.stage}};
    }
    return {};
  }

  Status check(int rank, const ActionList& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      const Action& a = list[i];
      if (!shape_.expects(a.kind, a.stage)) {
        return illegal(rank, i,
                       fmt::format("{} has no counterpart: there are {} stages on {} ranks", to_string(a),
                                   shape_.num_stages, shape_.num_ranks));
      }
      if (const auto first = find(a.kind, a.stage, a.micro_batch)) {
        return illegal(rank, i, fmt::format("{} stands twice: already action {}", to_string(a), *first));
      }
      for (const Action& need : needs(a)) {
        if (!find(need.kind, need.stage, need.micro_batch)) {
          return illegal(rank, i, fmt::format("{} stands before the {} it needs", to_string(a), to_string(need)));
        }
      }
      places_[{static_cast<int>(a.kind), a.stage, a.micro_batch}] = i;
    }
    for (int stage = rank; stage < shape_.num_stages; stage += shape_.num_ranks) {
      for (int m = 0; m < shape_.num_micro_batches; ++m) {
        for (int k = 0; k < kNumKinds; ++k) {
          const auto kind = static_cast<ActionKind>(k);
          if (shape_.expects(kind, stage) && !find(kind, stage, m)) {
            return illegal(rank, list.size(), fmt::format("the list ends without {}", to_string({kind, m, stage})));
          }
        }
      }
    }
    return {};
  }

 private:
  const Shape& shape_;
  std::map<std::tuple<int, int, int>, size_t> places_;
};

struct Message {
  int stage;  // of the receiver
  int micro_batch;
  double sent;
};

// Ranks advance in turn until each is at its end or waits for a message.
class Simulation {
 public:
  Simulation(const std::vector<ActionList>& lists, const Shape& shape, const Costs& costs)
      : lists_(lists),
        shape_(shape),
        costs_(costs),
        next_(lists.size(), 0),
        now_(lists.size(), 0.0),
        in_flight_(lists.size(), 0) {
    result_.ranks.resize(lists.size());
  }

  Result<SimulationResult> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < shape_.num_ranks; ++rank) {
        while (next_[rank] < lists_[rank].size()) {
          PENT_ASSIGN(const bool done, step(rank));
          if (!done) break;
          moved = true;
        }
      }
    }
    PENT_TRY(check_ended());
    double busy = 0.0;
    for (int rank = 0; rank < shape_.num_ranks; ++rank) {
      result_.makespan = std::max(result_.makespan, now_[rank]);
      busy += result_.ranks[rank].busy;
    }
    if (result_.makespan > 0.0) result_.bubble_fraction = 1.0 - busy / (shape_.num_ranks * result_.makespan);
    return std::move(result_);
  }

 private:
  using Channel = std::tuple<int, int, bool>;  // from rank, to rank, forward

  // The channel of a send or a receive.
  Channel channel(const Action& a) const {
    const int other = a.kind == send_forward || a.kind == receive_backward ? a.stage + 1 : a.stage - 1;
    const int mine = a.stage % shape_.num_ranks, theirs = other % shape_.num_ranks;
    const bool sends = a.kind == send_forward || a.kind == send_backward;
    const bool is_forward = a.kind == send_forward || a.kind == receive_forward;
    return sends ? Channel{mine, theirs, is_forward} : Channel{theirs, mine, is_forward};
  }

  // Runs the next action of a rank; false when it has to wait.
  Result<bool> step(int rank) {
    const Action& a = lists_[rank][next_[rank]];
    RankTimeline& line = result_.ranks[rank];
    const double start = now_[rank];
    double end = start;
    switch (a.kind) {
      case receive_forward:
      case receive_backward: {
        auto& queue = channels_[channel(a)];
        if (queue.empty()) return false;
        const Message& message = queue.front();
        if (message.stage != a.stage || message.micro_batch != a.micro_batch) {
          return illegal(rank, next_[rank],
                         fmt::format("{}, but the message that comes next from rank {} is micro-batch {} for stage {}",
                                     to_string(a), std::get<0>(channel(a)), message.micro_batch, message.stage));
        }
        end = std::max(start, message.sent + costs_.transfer);
        queue.pop_front();
        break;
      }
      case send_forward: channels_[channel(a)].push_back({a.stage + 1, a.micro_batch, start}); break;
      case send_backward: channels_[channel(a)].push_back({a.stage - 1, a.micro_batch, start}); break;
      case forward:
        end = start + costs_.forward;
        line.peak_in_flight = std::max(line.peak_in_flight, ++in_flight_[rank]);
        if (!shape_.training) --in_flight_[rank];
        break;
      case backward:
        end = start + costs_.backward;
        if (!shape_.deferred) --in_flight_[rank];
        break;
      case weight_gradient:
        end = start + costs_.weight;
        --in_flight_[rank];
        break;
    }
    if (a.kind == forward || a.kind == backward || a.kind == weight_gradient) line.busy += end - start;
    line.start.push_back(start);
    line.end.push_back(end);
    now_[rank] = end;
    ++next_[rank];
    return true;
  }

  Status check_ended() const {
    std::vector<std::string> waiting;
    int first = -1;
    for (int rank = 0; rank < shape_.num_ranks; ++rank) {
      if (next_[rank] == lists_[rank].size()) continue;
      if (first < 0) first = rank;
      waiting.push_back(
          fmt::format("rank {} at action {}, {}", rank, next_[rank], to_string(lists_[rank][next_[rank]])));
    }
    if (first < 0) return {};
    return illegal(first, next_[first], fmt::format("deadlock: each waits for another: {}", fmt::join(waiting, "; ")));
  }

  const std::vector<ActionList>& lists_;
  const Shape& shape_;
  const Costs& costs_;
  std::vector<size_t> next_;
  std::vector<double> now_;
  std::vector<int> in_flight_;
  std::map<Channel, std::deque<Message>> channels_;
  SimulationResult result_;
};

}  // namespace

Result<SimulationResult> simulate(const std::vector<ActionList>& lists, const Costs& costs) {
  PENT_ASSIGN(const Shape shape, shape_of(lists));
  for (int rank = 0; rank < shape.num_ranks; ++rank) PENT_TRY(Places(shape).check(rank, lists[rank]));
  return Simulation(lists, shape, costs).run();
}

}  // namespace penteract::schedule
