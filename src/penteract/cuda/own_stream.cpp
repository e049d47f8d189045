#include "penteract/cuda/own_stream.h"

#include <c10/cuda/CUDAException.h>

namespace penteract::cuda {

OwnStream::OwnStream() { C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
OwnStream::~OwnStream() { C10_CUDA_IGNORE_ERROR(cudaStreamDestroy(stream_)); }

}  // namespace penteract::cuda
