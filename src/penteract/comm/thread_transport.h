// The transport of rank threads in one process: ranges are published by pointer and read in place by their receivers,
// who alone write their own memory. Small ranges are copied into the meeting, so that nobody waits for readers.
// Thread-safety: one rank's end.
#pragma once

#include "penteract/comm/hub.h"
#include "penteract/comm/transport.h"
#include "penteract/comm/world_state.h"

namespace penteract::comm {

// Who this end is. Shared with the exchanges in flight, which may outlive the transport.
struct ThreadEnd {
  std::shared_ptr<World> world;
  std::shared_ptr<Hub> hub;
  std::vector<int> ranks;
  int index;
  const std::string* name;

  int rank() const { return ranks[index]; }
};

class ThreadTransport : public Transport {
 public:
  explicit ThreadTransport(ThreadEnd end) : end_(std::make_shared<const ThreadEnd>(std::move(end))) {}
  std::unique_ptr<Exchange> exchange(const Call& call, std::vector<Bytes> to_members, at::Tensor keep) override;
  std::unique_ptr<Transfer> send(const Call& call, int to_index, uint64_t channel, Bytes bytes,
                                 at::Tensor keep) override;
  std::unique_ptr<Transfer> receive(const Call& call, int from_index, uint64_t channel, MutableBytes into) override;

 private:
  std::shared_ptr<const ThreadEnd> end_;
};

}  // namespace penteract::comm
