#include "penteract/comm/reduce.h"

#include <bit>
#include <cstring>

#include "penteract/base/check.h"

// The loops below are memory-bound once they vectorise; AVX2 is chosen at run time where the processor has it. Neither
// changes bits: there is no product to fuse. Sanitizers do not survive the resolver of target_clones.
#pragma GCC optimize("O3")
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PENT_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define PENT_CLONES
#endif

namespace penteract::comm {
namespace {

// A chunk of accumulators stays in the first-level cache while the members' streams pass by.
constexpr int64_t kChunk = 2048;

// out[i] = a[i] + b[i], and the maximum; out may be a or b. One pair of functions a type: clones need plain functions.
#define PENT_PAIRWISE(T)                                                                                               \
  PENT_CLONES void add(T* out, const T* a, const T* b, int64_t count) {                                                \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];                                     \
  }                                                                                                                    \
  PENT_CLONES void maximum(T* out, const T* a, const T* b, int64_t count) {                                            \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < count; ++i) { out[i] = (b[i] > a[i] || b[i] != b[i]) ? b[i] : a[i]; } \
  }
PENT_PAIRWISE(float)
PENT_PAIRWISE(double)
PENT_PAIRWISE(int64_t)
#undef PENT_PAIRWISE

PENT_CLONES void widen(float* out, const uint16_t* in, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = std::bit_cast<float>(static_cast<uint32_t>(in[i]) << 16);
}
PENT_CLONES void add_bf16(float* sum, const uint16_t* in, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += std::bit_cast<float>(static_cast<uint32_t>(in[i]) << 16);
}
PENT_CLONES void maximum_bf16(float* max, const uint16_t* in, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(in[i]) << 16);
    max[i] = (x > max[i] || x != x) ? x : max[i];
  }
}
PENT_CLONES void round_bf16(uint16_t* out, const float* in, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(in[i]);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    out[i] = static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : rounded);
  }
}

template <class T>
void reduce_chunks(ReduceOp op, std::span<const Bytes> views, T* out, int64_t count) {
  alignas(64) T sum[kChunk];
  const size_t n = views.size();
  const auto at = [&](size_t member, int64_t begin) { return reinterpret_cast<const T*>(views[member].data) + begin; };
  const auto combine = [op](T* to, const T* a, const T* b, int64_t length) {
    op == ReduceOp::sum ? add(to, a, b, length) : maximum(to, a, b, length);
  };
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t length = std::min(kChunk, count - begin);
    // `out` may be a view, so it is written when all views of the chunk have been read.
    const T* so_far = at(0, begin);
    for (size_t member = 1; member + 1 < n; ++member) {
      combine(sum, so_far, at(member, begin), length);
      so_far = sum;
    }
    combine(out + begin, so_far, at(n - 1, begin), length);
  }
}

void reduce_bf16(ReduceOp op, std::span<const Bytes> views, uint16_t* out, int64_t count) {
  alignas(64) float sum[kChunk];
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t length = std::min(kChunk, count - begin);
    widen(sum, reinterpret_cast<const uint16_t*>(views[0].data) + begin, length);
    for (size_t member = 1; member < views.size(); ++member) {
      const auto* in = reinterpret_cast<const uint16_t*>(views[member].data) + begin;
      op == ReduceOp::sum ? add_bf16(sum, in, length) : maximum_bf16(sum, in, length);
    }
    round_bf16(out + begin, sum, length);
  }
}

template <class T>
T* as(std::byte* bytes) {
  return reinterpret_cast<T*>(bytes);
}

}  // namespace

bool reducible(at::ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kDouble || dtype == at::kBFloat16 || dtype == at::kLong;
}

void reduce_views(ReduceOp op, at::ScalarType dtype, std::span<const Bytes> views, std::byte* out) {
  PENT_CHECK(!views.empty() && reducible(dtype), "{} views of {}", views.size(), c10::toString(dtype));
  const size_t size_bytes = views[0].size;
  for (const Bytes& view : views) PENT_CHECK_EQ(view.size, size_bytes);
  if (size_bytes == 0) return;
  if (views.size() == 1) {
    if (out != views[0].data) std::memcpy(out, views[0].data, size_bytes);
    return;
  }
  const int64_t count = static_cast<int64_t>(size_bytes / c10::elementSize(dtype));
  switch (dtype) {
    case at::kFloat: return reduce_chunks(op, views, as<float>(out), count);
    case at::kDouble: return reduce_chunks(op, views, as<double>(out), count);
    case at::kLong: return reduce_chunks(op, views, as<int64_t>(out), count);
    default: return reduce_bf16(op, views, as<uint16_t>(out), count);
  }
}

}  // namespace penteract::comm
