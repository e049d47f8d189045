#include <cuda_bf16.h>

#include <cstdint>

#include "penteract/cuda/reduce.h"

namespace penteract::cuda {
namespace {

template <class T>
struct Accumulate {
  using Type = T;
};
template <>
struct Accumulate<__nv_bfloat16> {
  using Type = float;
};

template <class T>
__device__ typename Accumulate<T>::Type widen(T x) {
  return x;
}
__device__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__device__ T narrow(typename Accumulate<T>::Type x) {
  return x;
}
template <>
__device__ __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

template <class T, bool kMaximum>
__global__ void reduce_kernel(ReduceViews views, T* out, size_t num_elements) {
  using A = typename Accumulate<T>::Type;
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < num_elements; i += step) {
    A sum = widen(static_cast<const T*>(views.data[0])[i]);
    for (int member = 1; member < views.count; ++member) {
      const A x = widen(static_cast<const T*>(views.data[member])[i]);
      if constexpr (kMaximum) sum = (x > sum || x != x) ? x : sum;
      else sum += x;
    }
    out[i] = narrow<T>(sum);
  }
}

template <class T>
cudaError_t launch(bool maximum, const ReduceViews& views, void* out, size_t num_elements, cudaStream_t stream) {
  constexpr int kThreads = 256;
  constexpr size_t kMaxBlocks = 2048;
  const size_t wanted = (num_elements + kThreads - 1) / kThreads;
  const auto blocks = static_cast<unsigned>(wanted < kMaxBlocks ? wanted : kMaxBlocks);
  if (maximum) reduce_kernel<T, true><<<blocks, kThreads, 0, stream>>>(views, static_cast<T*>(out), num_elements);
  else reduce_kernel<T, false><<<blocks, kThreads, 0, stream>>>(views, static_cast<T*>(out), num_elements);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_reduce(bool maximum, ReduceType type, const ReduceViews& views, void* out, size_t num_elements,
                          cudaStream_t stream) {
  if (num_elements == 0) return cudaSuccess;
  switch (type) {
    case ReduceType::f32: return launch<float>(maximum, views, out, num_elements, stream);
    case ReduceType::f64: return launch<double>(maximum, views, out, num_elements, stream);
    case ReduceType::bf16: return launch<__nv_bfloat16>(maximum, views, out, num_elements, stream);
    case ReduceType::i64: return launch<long long>(maximum, views, out, num_elements, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace penteract::cuda
