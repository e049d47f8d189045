#include "penteract/cuda/nccl.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>

#include <memory>

#include "penteract/base/result.h"
#include "penteract/comm/error.h"
#include "penteract/cuda/own_stream.h"

namespace penteract::cuda {

void check_nccl(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  throw comm::CommError(Error{ErrorCode::comm_failed, fmt::format("{}: {}", what, ncclGetErrorString(result)), "NCCL",
                              "set NCCL_DEBUG=WARN to see more"});
}

namespace {

// A byte from every member to every other.
void connect(const std::vector<int>& devices, const std::vector<ncclComm_t>& members) {
  const int n = static_cast<int>(members.size());
  const c10::cuda::CUDAGuard back(c10::cuda::current_device());
  std::vector<std::unique_ptr<OwnStream>> streams;
  std::vector<char*> bytes(n);
  for (int i = 0; i < n; ++i) {
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(devices[i]));
    streams.push_back(std::make_unique<OwnStream>());
    C10_CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&bytes[i]), 2 * n));
    C10_CUDA_CHECK(cudaMemsetAsync(bytes[i], 0, 2 * n, streams[i]->get()));
  }
  check_nccl(ncclGroupStart(), "ncclGroupStart");
  for (int i = 0; i < n; ++i) {
    for (int peer = 0; peer < n; ++peer) {
      if (peer == i) continue;
      check_nccl(ncclSend(bytes[i] + peer, 1, ncclUint8, peer, members[i], streams[i]->get()), "ncclSend");
      check_nccl(ncclRecv(bytes[i] + n + peer, 1, ncclUint8, peer, members[i], streams[i]->get()), "ncclRecv");
    }
  }
  check_nccl(ncclGroupEnd(), "ncclGroupEnd");
  for (int i = 0; i < n; ++i) {
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(devices[i]));
    C10_CUDA_CHECK(cudaStreamSynchronize(streams[i]->get()));
    C10_CUDA_CHECK(cudaFree(bytes[i]));
    streams[i].reset();
  }
}

}  // namespace

NcclCommunicators::~NcclCommunicators() {
  for (auto& [key, members] : groups_) {
    for (ncclComm_t comm : members) aborted_ ? ncclCommAbort(comm) : ncclCommDestroy(comm);
  }
}

ncclComm_t NcclCommunicators::get(const std::vector<int>& ranks, int channel, int member) {
  const std::lock_guard lock(mutex_);
  if (aborted_) throw comm::CommError(Error{ErrorCode::comm_failed, "a rank failed", "NCCL", ""});
  auto& members = groups_[{ranks, channel}];
  if (members.empty()) {
    members.resize(ranks.size());
    check_nccl(ncclCommInitAll(members.data(), static_cast<int>(ranks.size()), ranks.data()), "ncclCommInitAll");
    connect(ranks, members);
  }
  return members[member];
}

void NcclCommunicators::abort() noexcept {
  const std::lock_guard lock(mutex_);
  if (aborted_) return;
  aborted_ = true;
  for (auto& [key, members] : groups_) {
    for (ncclComm_t comm : members) ncclCommAbort(comm);
    members.clear();
  }
}

}  // namespace penteract::cuda
