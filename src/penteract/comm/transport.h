// What a transport provides: an exchange of byte ranges among all members, and messages between two. Reductions stand
// above it, once (collectives.h). An exchange hands out views of the peers' bytes, so that memory that is shared needs
// no copy; a transport between processes gives views of what it received.
// Thread-safety: one rank's end, used by its own thread. All waits throw CommError.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "penteract/comm/call.h"

namespace penteract::comm {

struct Bytes {
  const std::byte* data = nullptr;
  size_t size = 0;
};
struct MutableBytes {
  std::byte* data = nullptr;
  size_t size = 0;
};

// Ranges of at most this many bytes together are copied when they are published: their producer may write at once.
inline constexpr size_t kCopiedBytes = 8192;
static_assert(kCopiedBytes >= topology::kDirectReduceBytes);

// One exchange in flight: receive, release, finish, once each and in this order.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual bool ready() const = 0;
  // Waits for all members. View i: what member i sent here, readable until release(). Empty: nothing moves (fake).
  virtual std::span<const Bytes> receive() = 0;
  virtual void release() = 0;
  // Waits until no member reads this rank's ranges any more. A member that published a later exchange of the group has
  // released this one, so after the receive() of a later one it returns at once.
  virtual void finish() = 0;
};

// One message in flight.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual bool ready() const = 0;
  virtual void finish() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Publishes one range a member (this rank's own included). `keep` stays alive while peers may read. The sequence
  // numbers of a group's exchanges ascend by one.
  virtual std::unique_ptr<Exchange> exchange(const Call& call, std::vector<Bytes> to_members, at::Tensor keep) = 0;
  virtual std::unique_ptr<Transfer> send(const Call& call, int to_index, uint64_t channel, Bytes bytes,
                                         at::Tensor keep) = 0;
  virtual std::unique_ptr<Transfer> receive(const Call& call, int from_index, uint64_t channel, MutableBytes into) = 0;
};

}  // namespace penteract::comm
