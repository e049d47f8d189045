#include "penteract/ops/matmul.h"

#include <ATen/core/grad_mode.h>

#include "penteract/ops/aten/aten.h"
#include "penteract/ops/dispatch.h"
#include "penteract/ops/product.h"
#include "penteract/precision/precision.h"

namespace penteract::ops {
namespace {

void check_operands(const at::Tensor& x, const at::Tensor& w) {
  PENT_CHECK(x.dim() == 2 && w.dim() == 2, "{} and {} dimensions", x.dim(), w.dim());
  check_contiguous(x, "x");
  check_contiguous(w, "w");
  check_dtype(w, x.scalar_type(), "w");
}

}  // namespace

bool is_few(int64_t rows, at::ScalarType dtype) { return rows <= (dtype == at::kBFloat16 ? 16 : 8); }

at::Tensor matmul_nt(const at::Tensor& x, const at::Tensor& w) {
  const at::NoGradGuard no_grad;
  check_operands(x, w);
  PENT_CHECK_EQ(x.size(1), w.size(1));
  auto y = at::empty({x.size(0), w.size(0)}, x.options());
  if (y.numel() == 0) return y;
  if (use_aten(x, w)) return aten::matmul_nt(x, w);
  if (is_few(x.size(0), x.scalar_type())) {
    few_rows_nt(x, w.unsqueeze(0), {{0, x.size(0), 0}}, y);
  } else {
    many_rows_nt(x, w, y);
  }
  return y;
}

at::Tensor matmul_nn(const at::Tensor& dy, const at::Tensor& w) {
  const at::NoGradGuard no_grad;
  check_operands(dy, w);
  PENT_CHECK_EQ(dy.size(1), w.size(0));
  auto dx = at::empty({dy.size(0), w.size(1)}, dy.options());
  if (dx.numel() == 0) return dx;
  if (use_aten(dy, w)) return aten::matmul_nn(dy, w);
  if (is_few(dy.size(0), dy.scalar_type())) {
    few_rows_nn(dy, w.unsqueeze(0), {{0, dy.size(0), 0}}, dx);
  } else {
    many_rows_nn(dy, w, dx);
  }
  return dx;
}

void wgrad_accumulate(const at::Tensor& dy, const at::Tensor& x, at::Tensor main_grad) {
  const at::NoGradGuard no_grad;
  check_operands(dy, x);
  check_contiguous(main_grad, "main_grad");
  check_dtype(main_grad, precision::accumulate_dtype(x.scalar_type()), "main_grad");
  PENT_CHECK_EQ(dy.size(0), x.size(0));
  PENT_CHECK(main_grad.dim() == 2 && main_grad.size(0) == dy.size(1) && main_grad.size(1) == x.size(1));
  if (x.size(0) == 0 || main_grad.numel() == 0) return;
  if (use_aten(dy, x, main_grad)) return aten::wgrad_accumulate(dy, x, main_grad);
  if (is_few(x.size(0), x.scalar_type())) {
    few_rows_wgrad(dy, x, {{0, x.size(0), 0}}, main_grad.unsqueeze(0));
  } else {
    many_rows_wgrad(dy, x, main_grad);
  }
}

}  // namespace penteract::ops
