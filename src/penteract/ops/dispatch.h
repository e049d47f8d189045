// From tensors to kernels: which form of an operator runs, element types, pointers, checks. For the sources of ops/.
#pragma once

#include <ATen/core/Tensor.h>

#include "penteract/base/check.h"
#include "penteract/ops/aten_scope.h"
#include "penteract/ops/kernels.h"

namespace penteract::ops {

// True where the operator must run as plain ATen calls: a tensor is not on the CPU, or an AtenScope is open.
template <class... Tensors>
bool use_aten(const Tensors&... tensors) {
  const auto elsewhere = [](const at::Tensor& t) { return t.defined() && !t.is_cpu(); };
  return (elsewhere(tensors) || ...) || AtenScope::is_open();
}

// Items a task of at::parallel_for takes at least, so that each task does about this many element operations.
// Fixed numbers: the split never depends on load.
inline int64_t rows_per_task(int64_t row_elements) {
  constexpr int64_t kElementsPerTask = 16384;
  return row_elements >= kElementsPerTask ? 1 : kElementsPerTask / (row_elements > 0 ? row_elements : 1);
}

// Calls f with a value of the element type (double, float or Bf16).
template <class F>
decltype(auto) with_element_type(at::ScalarType dtype, F&& f) {
  switch (dtype) {
    case at::kDouble: return f(double{});
    case at::kFloat: return f(float{});
    default: PENT_CHECK(dtype == at::kBFloat16, "no CPU kernel for {}", c10::toString(dtype)); return f(Bf16{});
  }
}

template <class T>
T* data(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

inline void check_contiguous(const at::Tensor& tensor, const char* name) {
  PENT_CHECK(tensor.is_contiguous(), "{} must be contiguous", name);
}

inline void check_dtype(const at::Tensor& tensor, at::ScalarType dtype, const char* name) {
  PENT_CHECK(tensor.scalar_type() == dtype, "{} is {}, expected {}", name, c10::toString(tensor.scalar_type()),
             c10::toString(dtype));
}

}  // namespace penteract::ops
