// One rank's streams on its CUDA device. Thread-safety: the rank's own thread; see comm/device.h.
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <memory>

#include "penteract/comm/device.h"
#include "penteract/cuda/memory.h"
#include "penteract/cuda/nccl.h"
#include "penteract/cuda/own_stream.h"

namespace penteract::cuda {

class CudaEnd : public comm::DeviceEnd {
 public:
  // Makes the compute stream current in this thread. Lifetime: the communicators outlive it.
  CudaEnd(int rank, int device, NcclCommunicators& communicators);
  ~CudaEnd() override;

  at::Device device() const override { return device_; }
  MemoryAccount& memory() override { return *memory_->account; }
  comm::DeviceMemory reserved() const override;
  comm::DevicePointPtr publish() override;
  void wait(const comm::DevicePointPtr& point) override;
  comm::DevicePointPtr reached() override;
  void join() override;
  void copy(std::byte* to, const std::byte* from, size_t size_bytes) override;
  void set_zero(std::byte* to, size_t size_bytes) override;
  void reduce(comm::ReduceOp op, at::ScalarType dtype, std::span<const comm::Bytes> views, std::byte* out) override;
  std::vector<at::Tensor> exchange(const std::vector<int>& ranks, int index, const std::vector<comm::Bytes>& to_members,
                                   const std::vector<size_t>& from_bytes) override;
  comm::DevicePointPtr send(int to_rank, comm::Bytes bytes) override;
  void receive(int from_rank, comm::MutableBytes into) override;

 private:
  // The stream of the messages from one rank to another, whose end this is.
  OwnStream& message_stream(int from_rank, int to_rank);

  int rank_;
  at::Device device_;
  NcclCommunicators& communicators_;
  OwnStream compute_, communication_;
  std::shared_ptr<RankMemory> memory_;
  std::map<std::pair<int, int>, std::unique_ptr<OwnStream>> message_streams_;
};

}  // namespace penteract::cuda
