// Bytes and steps of each collective, for one rank: the one formula of the planner and of the communicator.
// A step is a message that a rank sends after the one before it. Reductions are an exchange of slices, a sum, and a
// gather, so they move the bytes of a ring: Thakur, Rabenseifner, Gropp, "Optimization of collective communication
// operations in MPICH", 2005, section 4. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace penteract::topology {

enum class Collective : uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, send, barrier };

std::string_view collective_name(Collective op);

struct CollectiveCost {
  int64_t sent_bytes = 0;  // that leave the rank
  int64_t num_steps = 0;
  bool operator==(const CollectiveCost&) const = default;
};

// An all-reduce of at most this many bytes sends the whole tensor to every member in one exchange.
inline constexpr int64_t kDirectReduceBytes = 4096;

// `bytes` of what: all_reduce, broadcast, send: the tensor; reduce_scatter: the whole input; all_gather: the whole
// output; all_to_all: the whole input. Equal parts; a part that does not divide counts as the largest one. Of a
// broadcast the root's cost (others send nothing). Any operation of a group of one costs nothing.
// REQUIRES: num_ranks >= 1, bytes >= 0.
CollectiveCost collective_cost(Collective op, int64_t num_ranks, int64_t bytes);

// An exchange of unequal parts in which this rank sends `sent_bytes` to the others.
CollectiveCost exchange_cost(int64_t num_ranks, int64_t sent_bytes);

}  // namespace penteract::topology
