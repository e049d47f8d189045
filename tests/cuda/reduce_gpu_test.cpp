// The reduction kernels give the sums and maxima of a loop on the host, in group-rank order, for every type.
#include "penteract/cuda/reduce.h"

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace penteract::cuda {
namespace {

constexpr int kViews = 5;

void ok(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

template <class T>
T* on_device(const std::vector<T>& host) {
  void* data = nullptr;
  ok(cudaMalloc(&data, std::max<size_t>(host.size(), 1) * sizeof(T)));
  ok(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return static_cast<T*>(data);
}

// The result in the place of the first view, which the kernel may overwrite.
template <class T>
std::vector<T> reduced(bool maximum, ReduceType type, const std::vector<std::vector<T>>& views) {
  ReduceViews device;
  std::vector<T*> owned;
  for (const auto& view : views) device.data[device.count++] = owned.emplace_back(on_device(view));
  ok(launch_reduce(maximum, type, device, owned[0], views[0].size(), nullptr));
  ok(cudaStreamSynchronize(nullptr));
  std::vector<T> out(views[0].size());
  ok(cudaMemcpy(out.data(), owned[0], out.size() * sizeof(T), cudaMemcpyDeviceToHost));
  for (T* data : owned) ok(cudaFree(data));
  return out;
}

// More elements than all threads of the largest grid, so that the stride of the loop counts.
constexpr size_t kSizes[] = {0, 1, 3, 257, 2048 * 256 + 77};

// Fractions of three digits: their sums round, and so depend on the order.
template <class T>
std::vector<std::vector<T>> values(size_t size) {
  std::vector<std::vector<T>> views(kViews, std::vector<T>(size));
  for (int v = 0; v < kViews; ++v)
    for (size_t i = 0; i < size; ++i)
      views[v][i] = static_cast<T>((static_cast<double>((i * 7919 + v * 104729) % 200'003) - 100'000) / 1000 * (v + 1));
  return views;
}

template <class T, class Wide>
void compare(ReduceType type) {
  for (const size_t size : kSizes) {
    const auto views = values<T>(size);
    const std::vector<T> sum = reduced(false, type, views), maximum = reduced(true, type, views);
    for (size_t i = 0; i < size; ++i) {
      auto expected_sum = static_cast<Wide>(views[0][i]), expected_maximum = expected_sum;
      for (int v = 1; v < kViews; ++v) {
        const auto x = static_cast<Wide>(views[v][i]);
        expected_sum += x;
        expected_maximum = x > expected_maximum ? x : expected_maximum;
      }
      ASSERT_EQ(static_cast<Wide>(sum[i]), static_cast<Wide>(static_cast<T>(expected_sum))) << size << " " << i;
      ASSERT_EQ(static_cast<Wide>(maximum[i]), expected_maximum) << size << " " << i;
    }
  }
}

TEST(CudaReduce, Float) { compare<float, float>(ReduceType::f32); }
TEST(CudaReduce, Double) { compare<double, double>(ReduceType::f64); }
TEST(CudaReduce, Bfloat16) { compare<__nv_bfloat16, float>(ReduceType::bf16); }
TEST(CudaReduce, Int64) { compare<int64_t, int64_t>(ReduceType::i64); }

TEST(CudaReduce, ANaNStaysInTheMaximum) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const auto out = reduced<float>(true, ReduceType::f32, {{kNaN, 1, 1}, {1, kNaN, 1}, {2, 2, 2}});
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_TRUE(std::isnan(out[1]));
  EXPECT_EQ(out[2], 2);
}

}  // namespace
}  // namespace penteract::cuda
