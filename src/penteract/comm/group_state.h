// What a Group points to: members, this rank's place, its end of the transport. Thread-safety: immutable but for the
// member's own counters in the hub, which its thread alone uses.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penteract/comm/hub.h"
#include "penteract/comm/transport.h"
#include "penteract/comm/world_state.h"

namespace penteract::comm {

struct GroupState {
  std::shared_ptr<World> world;
  std::shared_ptr<Hub> hub;
  std::vector<int> ranks;
  int index = 0;
  const std::string* name = nullptr;
  std::unique_ptr<Transport> transport;

  int size() const { return static_cast<int>(ranks.size()); }
  int rank() const { return ranks[index]; }
  Hub::Member& counters() const { return hub->member(index); }
};

}  // namespace penteract::comm
