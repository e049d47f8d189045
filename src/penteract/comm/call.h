// What a rank calls: the description that peers compare, reports name and the flight recorder keeps.
// Thread-safety: a value.
#pragma once

#include <c10/core/ScalarType.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "penteract/topology/collective_cost.h"

namespace penteract::comm {

class DeviceEnd;

struct Call {
  const char* operation = "";  // a literal
  const char* tag = "";        // a literal
  at::ScalarType dtype = at::kByte;
  std::array<int64_t, 4> shape{};
  int num_dims = 0;       // of the tensor; dims past the fourth are not shown
  uint64_t sequence = 0;  // counts a group's collectives, or the messages of one channel
  int64_t payload_bytes = 0;
  int64_t agreed = 0;  // what all members must give alike: numel, or the root
  topology::CollectiveCost cost;
  std::chrono::milliseconds deadline{0};
  DeviceEnd* device = nullptr;  // this rank's, where the tensor lies on one; null: host memory
};

// "all_reduce_sum Float [8, 3], 96 bytes, tag 'gradients'"; no sequence, which stands with the group.
std::string describe(const Call& call);

// Whether two members' calls in one sequence position fit together (sizes of unequal parts are compared in pairs).
bool same_call(const Call& a, const Call& b);

}  // namespace penteract::comm
