// A device whose work is asynchronous to the host, as comm and the ranks see it; the CPU is the absence of one. Each rank
// has its own compute and communication stream; streams wait for points in each other's work, the host for nothing.
// Implemented in cuda/. Thread-safety: a DeviceEnd is its rank thread's; points may be waited for by any rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <vector>

#include "penteract/base/memory_ledger.h"
#include "penteract/comm/reduce.h"
#include "penteract/comm/transport.h"

namespace penteract::comm {

// A point in the work of a stream.
class DevicePoint {
 public:
  virtual ~DevicePoint() = default;
};
using DevicePointPtr = std::shared_ptr<const DevicePoint>;

struct DeviceMemory {
  uint64_t reserved_bytes = 0;       // that the allocator took from the device for this rank
  uint64_t peak_reserved_bytes = 0;  // the most so far
};

// One rank's end of its device. While it exists, its compute stream is the current one of the rank's thread.
class DeviceEnd {
 public:
  virtual ~DeviceEnd() = default;
  virtual at::Device device() const = 0;
  virtual MemoryAccount& memory() = 0;  // of the rank's tensors on the device
  virtual DeviceMemory reserved() const = 0;

  // The communication stream waits for what the compute stream was given so far; the point is after both.
  virtual DevicePointPtr publish() = 0;
  // The communication stream waits for a point of any rank; null is none.
  virtual void wait(const DevicePointPtr& point) = 0;
  // The point that the communication stream has been given work up to.
  virtual DevicePointPtr reached() = 0;
  // The compute stream waits for what the communication stream was given so far.
  virtual void join() = 0;

  // On the communication stream. Addresses are those of this rank's device, or of any where the devices are one.
  virtual void copy(std::byte* to, const std::byte* from, size_t size_bytes) = 0;
  virtual void set_zero(std::byte* to, size_t size_bytes) = 0;
  virtual void reduce(ReduceOp op, at::ScalarType dtype, std::span<const Bytes> views, std::byte* out) = 0;

  // Between devices (one rank each). exchange: sends to_members[i] to member i of the group `ranks` and returns what each
  // sent here, from_bytes[i] long, in memory of this device that the tensors own. All members, same order.
  virtual std::vector<at::Tensor> exchange(const std::vector<int>& ranks, int index,
                                           const std::vector<Bytes>& to_members,
                                           const std::vector<size_t>& from_bytes) = 0;
  // The k-th send to a rank meets its k-th receive from here. On streams of their own, so that they wait for nothing
  // else; the point is after the message.
  virtual DevicePointPtr send(int to_rank, Bytes bytes) = 0;
  virtual void receive(int from_rank, MutableBytes into) = 0;  // the communication stream waits for it
};

// The devices of this process.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  // In the rank's thread, at its start; the end is destroyed there too, after the rank's work.
  virtual std::unique_ptr<DeviceEnd> enter(int rank) = 0;
  // True where all ranks share one device and read each other's memory.
  virtual bool one_device() const = 0;
  // A rank failed: what waits for others on the devices is given up. Any thread, once or more.
  virtual void abort() noexcept = 0;
};

}  // namespace penteract::comm
