#include "penteract/ops/swiglu.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "penteract/ops/aten/aten.h"
#include "penteract/ops/dispatch.h"

namespace penteract::ops {

at::Tensor swiglu(const at::Tensor& gate_up) {
  const at::NoGradGuard no_grad;
  PENT_CHECK(gate_up.dim() == 2 && gate_up.size(1) % 2 == 0);
  check_contiguous(gate_up, "gate_up");
  if (use_aten(gate_up)) return aten::swiglu(gate_up);
  const int64_t rows = gate_up.size(0), width = gate_up.size(1) / 2;
  auto y = at::empty({rows, width}, gate_up.options());
  with_element_type(gate_up.scalar_type(), [&]<class T>(T) {
    const auto* in = data<T>(gate_up);
    auto* out = data<T>(y);
    at::parallel_for(0, rows, rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = in + 2 * i * width;
        kernels<T>().row_swiglu(row, row + width, out + i * width, width);
      }
    });
  });
  return y;
}

at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up) {
  const at::NoGradGuard no_grad;
  PENT_CHECK(gate_up.dim() == 2 && dy.dim() == 2 && gate_up.size(1) == 2 * dy.size(1) && gate_up.size(0) == dy.size(0));
  check_contiguous(gate_up, "gate_up");
  check_contiguous(dy, "dy");
  check_dtype(dy, gate_up.scalar_type(), "dy");
  if (use_aten(dy, gate_up)) return aten::swiglu_backward(dy, gate_up);
  const int64_t rows = dy.size(0), width = dy.size(1);
  auto grad = at::empty(gate_up.sizes(), gate_up.options());
  with_element_type(dy.scalar_type(), [&]<class T>(T) {
    const auto *in = data<T>(gate_up), *ds = data<T>(dy);
    auto* out = data<T>(grad);
    at::parallel_for(0, rows, rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = in + 2 * i * width;
        T* drow = out + 2 * i * width;
        kernels<T>().row_swiglu_backward(ds + i * width, row, row + width, drow, drow + width, width);
      }
    });
  });
  return grad;
}

}  // namespace penteract::ops
