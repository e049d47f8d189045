#include "penteract/cuda/end.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>

#include "penteract/base/check.h"
#include "penteract/cuda/reduce.h"

namespace penteract::cuda {
namespace {

// What a pair's messages are kept apart by: a group of the two ranks may exchange at the same time.
constexpr int kExchangeChannel = 0, kAscendingChannel = 1, kDescendingChannel = 2;

class CudaPoint : public comm::DevicePoint {
 public:
  explicit CudaPoint(cudaStream_t stream) {
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    C10_CUDA_CHECK(cudaEventRecord(event_, stream));
  }
  ~CudaPoint() override { C10_CUDA_IGNORE_ERROR(cudaEventDestroy(event_)); }
  void make_wait(cudaStream_t stream) const { C10_CUDA_CHECK(cudaStreamWaitEvent(stream, event_)); }

 private:
  cudaEvent_t event_ = nullptr;
};

comm::DevicePointPtr point_on(cudaStream_t stream) { return std::make_shared<const CudaPoint>(stream); }

void make_wait(cudaStream_t stream, const comm::DevicePointPtr& point) {
  if (point) static_cast<const CudaPoint&>(*point).make_wait(stream);
}

ReduceType reduce_type(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat: return ReduceType::f32;
    case at::kDouble: return ReduceType::f64;
    case at::kBFloat16: return ReduceType::bf16;
    case at::kLong: return ReduceType::i64;
    default: PENT_CHECK(false, "no reduction of {}", c10::toString(dtype));
  }
}

}  // namespace

CudaEnd::CudaEnd(int rank, int device, NcclCommunicators& communicators)
    : rank_(rank),
      device_((c10::cuda::set_device(static_cast<c10::DeviceIndex>(device)), at::kCUDA),
              static_cast<c10::DeviceIndex>(device)),
      communicators_(communicators),
      memory_(own_stream(compute_.get())) {
  c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromExternal(compute_.get(), device_.index()));
}

CudaEnd::~CudaEnd() {
  // The rank's tensors are gone; what its streams still do must end before they do.
  C10_CUDA_IGNORE_ERROR(cudaStreamSynchronize(compute_.get()));
  C10_CUDA_IGNORE_ERROR(cudaStreamSynchronize(communication_.get()));
  for (const auto& [pair, stream] : message_streams_) C10_CUDA_IGNORE_ERROR(cudaStreamSynchronize(stream->get()));
  c10::cuda::setCurrentCUDAStream(c10::cuda::getDefaultCUDAStream(device_.index()));
  disown_stream(compute_.get());
}

comm::DeviceMemory CudaEnd::reserved() const { return {memory_->reserved_bytes, memory_->peak_reserved_bytes}; }

comm::DevicePointPtr CudaEnd::publish() {
  make_wait(communication_.get(), point_on(compute_.get()));
  return reached();
}

void CudaEnd::wait(const comm::DevicePointPtr& point) { make_wait(communication_.get(), point); }
comm::DevicePointPtr CudaEnd::reached() { return point_on(communication_.get()); }
void CudaEnd::join() { make_wait(compute_.get(), reached()); }

void CudaEnd::copy(std::byte* to, const std::byte* from, size_t size_bytes) {
  C10_CUDA_CHECK(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDeviceToDevice, communication_.get()));
}

void CudaEnd::set_zero(std::byte* to, size_t size_bytes) {
  C10_CUDA_CHECK(cudaMemsetAsync(to, 0, size_bytes, communication_.get()));
}

void CudaEnd::reduce(comm::ReduceOp op, at::ScalarType dtype, std::span<const comm::Bytes> views, std::byte* out) {
  PENT_CHECK(!views.empty() && views.size() <= kMaxReduceViews, "{} views", views.size());
  ReduceViews pointers;
  pointers.count = static_cast<int>(views.size());
  for (size_t i = 0; i < views.size(); ++i) {
    PENT_CHECK_EQ(views[i].size, views[0].size);
    pointers.data[i] = views[i].data;
  }
  C10_CUDA_CHECK(launch_reduce(op == comm::ReduceOp::max, reduce_type(dtype), pointers, out,
                               views[0].size / c10::elementSize(dtype), communication_.get()));
}

std::vector<at::Tensor> CudaEnd::exchange(const std::vector<int>& ranks, int index,
                                          const std::vector<comm::Bytes>& to_members,
                                          const std::vector<size_t>& from_bytes) {
  std::vector<at::Tensor> received;
  for (size_t size : from_bytes)
    received.push_back(at::empty({static_cast<int64_t>(size)}, at::TensorOptions().dtype(at::kByte).device(device_)));
  publish();  // the new memory may still be in use on the compute stream
  ncclComm_t comm = communicators_.get(ranks, kExchangeChannel, index);
  const int n = static_cast<int>(ranks.size());
  check_nccl(ncclGroupStart(), "ncclGroupStart");
  for (int i = 0; i < n; ++i) {
    if (i == index) continue;
    if (to_members[i].size > 0)
      check_nccl(ncclSend(to_members[i].data, to_members[i].size, ncclUint8, i, comm, communication_.get()),
                 "ncclSend");
    if (from_bytes[i] > 0)
      check_nccl(ncclRecv(received[i].data_ptr(), from_bytes[i], ncclUint8, i, comm, communication_.get()), "ncclRecv");
  }
  check_nccl(ncclGroupEnd(), "ncclGroupEnd");
  if (from_bytes[index] > 0)
    copy(static_cast<std::byte*>(received[index].data_ptr()), to_members[index].data, from_bytes[index]);
  return received;
}

OwnStream& CudaEnd::message_stream(int from_rank, int to_rank) {
  auto& stream = message_streams_[{from_rank, to_rank}];
  if (!stream) stream = std::make_unique<OwnStream>();
  return *stream;
}

comm::DevicePointPtr CudaEnd::send(int to_rank, comm::Bytes bytes) {
  const std::vector<int> pair = {std::min(rank_, to_rank), std::max(rank_, to_rank)};
  const int own = rank_ < to_rank ? 0 : 1;
  ncclComm_t comm = communicators_.get(pair, own == 0 ? kAscendingChannel : kDescendingChannel, own);
  cudaStream_t stream = message_stream(rank_, to_rank).get();
  make_wait(stream, reached());
  check_nccl(ncclSend(bytes.data, bytes.size, ncclUint8, 1 - own, comm, stream), "ncclSend");
  return point_on(stream);
}

void CudaEnd::receive(int from_rank, comm::MutableBytes into) {
  const std::vector<int> pair = {std::min(rank_, from_rank), std::max(rank_, from_rank)};
  const int own = rank_ < from_rank ? 0 : 1;
  ncclComm_t comm = communicators_.get(pair, own == 1 ? kAscendingChannel : kDescendingChannel, own);
  cudaStream_t stream = message_stream(from_rank, rank_).get();
  make_wait(stream, reached());
  check_nccl(ncclRecv(into.data, into.size, ncclUint8, 1 - own, comm, stream), "ncclRecv");
  wait(point_on(stream));
}

}  // namespace penteract::cuda
