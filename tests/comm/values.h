// Tensors of pseudo-random values for the tests of comm, and their sums by a plain loop in member order.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/util/BFloat16.h>

#include <cstring>
#include <vector>

#include "penteract/base/rng.h"

namespace penteract::comm::testing {

inline double value_at(int member, int64_t i) {
  const auto bits = philox4x32({static_cast<uint32_t>(i), static_cast<uint32_t>(member), 0, 0}, {7, 9});
  return (static_cast<double>(bits[0]) / 4294967296.0 - 0.5) * (1 << (bits[1] % 8));
}

// Calls f with a zero of the C++ type of `dtype`.
template <class F>
void with_type(at::ScalarType dtype, F f) {
  if (dtype == at::kFloat) return f(float{});
  if (dtype == at::kDouble) return f(double{});
  if (dtype == at::kLong) return f(int64_t{});
  f(c10::BFloat16{});
}

inline at::Tensor values(int member, std::vector<int64_t> sizes, at::ScalarType dtype) {
  at::Tensor t = at::empty(sizes, dtype);
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    T* out = t.data_ptr<T>();
    for (int64_t i = 0; i < t.numel(); ++i) {
      out[i] = static_cast<T>(std::is_integral_v<T> ? 1000 * value_at(member, i) : value_at(member, i));
    }
  });
  return t;
}

// Element by element over members 0..n-1 in order; bf16 in fp32, rounded once.
inline at::Tensor serial_sum(int num_members, std::vector<int64_t> sizes, at::ScalarType dtype, bool maximum = false) {
  std::vector<at::Tensor> all;
  for (int member = 0; member < num_members; ++member) all.push_back(values(member, sizes, dtype));
  at::Tensor sum = at::empty(sizes, dtype);
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    using Wide = std::conditional_t<std::is_same_v<T, c10::BFloat16>, float, T>;
    for (int64_t i = 0; i < sum.numel(); ++i) {
      Wide so_far = static_cast<Wide>(all[0].data_ptr<T>()[i]);
      for (int member = 1; member < num_members; ++member) {
        const Wide x = static_cast<Wide>(all[member].data_ptr<T>()[i]);
        so_far = maximum ? std::max(so_far, x) : static_cast<Wide>(so_far + x);
      }
      sum.data_ptr<T>()[i] = static_cast<T>(so_far);
    }
  });
  return sum;
}

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.is_contiguous() && b.is_contiguous() &&
         (a.nbytes() == 0 || std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0);
}

}  // namespace penteract::comm::testing
