// Launches of the reduction kernels: pointers, sizes and a stream, nothing of ATen. Thread-safety: any thread; the
// work runs in stream order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace penteract::cuda {

enum class ReduceType { f32, f64, bf16, i64 };

inline constexpr int kMaxReduceViews = 64;  // of one launch; more are reduced in turns by the caller's order

// The members' views, in group-rank order.
struct ReduceViews {
  const void* data[kMaxReduceViews];
  int count = 0;
};

// out[i] = views[0][i] op views[1][i] op ... in that order; bf16 accumulates in fp32 and rounds once, to nearest even.
// A NaN stays NaN in the maximum. `out` may be one of the views. REQUIRES: 1 <= views.count <= kMaxReduceViews.
cudaError_t launch_reduce(bool maximum, ReduceType type, const ReduceViews& views, void* out, size_t num_elements,
                          cudaStream_t stream);

}  // namespace penteract::cuda
