#include "penteract/topology/collective_cost.h"

#include "penteract/base/check.h"

namespace penteract::topology {

std::string_view collective_name(Collective op) {
  static constexpr std::string_view kNames[] = {"all-reduce", "reduce-scatter", "all-gather", "all-to-all",
                                                "broadcast",  "send",           "barrier"};
  return kNames[static_cast<int>(op)];
}

CollectiveCost collective_cost(Collective op, int64_t num_ranks, int64_t bytes) {
  PENT_CHECK_GE(num_ranks, 1);
  PENT_CHECK_GE(bytes, 0);
  if (num_ranks == 1) return {};
  const int64_t num_peers = num_ranks - 1;
  const int64_t part_bytes = bytes / num_ranks + (bytes % num_ranks != 0);
  switch (op) {
    case Collective::all_reduce:
      if (bytes <= kDirectReduceBytes) return {bytes * num_peers, num_peers};
      return {2 * num_peers * part_bytes, 2 * num_peers};
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all: return {num_peers * part_bytes, num_peers};
    case Collective::broadcast: return {num_peers * bytes, num_peers};
    case Collective::send: return {bytes, 1};
    case Collective::barrier: return {0, num_peers};
  }
  return {};
}

CollectiveCost exchange_cost(int64_t num_ranks, int64_t sent_bytes) {
  PENT_CHECK_GE(num_ranks, 1);
  PENT_CHECK_GE(sent_bytes, 0);
  if (num_ranks == 1) return {};
  return {sent_bytes, num_ranks - 1};
}

}  // namespace penteract::topology
