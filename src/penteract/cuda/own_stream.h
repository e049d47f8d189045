// A CUDA stream with an owner. Thread-safety: one thread's.
#pragma once

#include <cuda_runtime_api.h>

namespace penteract::cuda {

// A stream of its own, that no default-stream work waits for.
class OwnStream {
 public:
  OwnStream();  // on the current device
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace penteract::cuda
