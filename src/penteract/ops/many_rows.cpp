#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "penteract/ops/dispatch.h"
#include "penteract/ops/product.h"

namespace penteract::ops {
namespace {

// A chunk of weights in float is 256 KiB: with its operands it stays in the second-level cache.
constexpr int64_t kChunkElements = 65536;

int64_t chunk_rows(int64_t n, int64_t k) {
  const int64_t rows = kChunkElements / std::max<int64_t>(k, 1) / 16 * 16;
  return std::min(n, std::max<int64_t>(rows, 16));
}

bool widens(const at::Tensor& x) { return x.scalar_type() == at::kBFloat16 && !has_native_bf16(); }

at::Tensor float_like(const at::Tensor& x, at::IntArrayRef sizes) {
  return at::empty(sizes, x.options().dtype(at::kFloat));
}

// A dense [rows, columns] matrix at the start of a workspace.
at::Tensor dense(const at::Tensor& workspace, int64_t rows, int64_t columns) {
  return workspace.narrow(0, 0, rows * columns).view({rows, columns});
}

// Columns [first, first + out.size(1)) of x, widened into the dense matrix out.
void widen_columns(const at::Tensor& x, int64_t first, const at::Tensor& out) {
  const int64_t width = x.size(1), columns = out.size(1);
  const auto* from = data<Bf16>(x);
  auto* to = data<float>(out);
  at::parallel_for(0, x.size(0), rows_per_task(columns), [&](int64_t begin, int64_t end) {
    if (columns == width) {
      kernels<Bf16>().widen(from + begin * width, to + begin * width, (end - begin) * width);
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      kernels<Bf16>().widen(from + i * width + first, to + i * columns, columns);
    }
  });
}

void narrow_columns(const at::Tensor& x, int64_t first, const at::Tensor& out) {
  const int64_t width = out.size(1), columns = x.size(1);
  const auto* from = data<float>(x);
  auto* to = data<Bf16>(out);
  at::parallel_for(0, x.size(0), rows_per_task(columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      kernels<Bf16>().narrow(from + i * columns, to + i * width + first, columns);
    }
  });
}

at::Tensor widened(const at::Tensor& x) {
  const auto out = float_like(x, x.sizes());
  widen_columns(x, 0, out);
  return out;
}

}  // namespace

void many_rows_nt(const at::Tensor& x, const at::Tensor& w, at::Tensor y) {
  if (!widens(x)) {
    at::mm_out(y, x, w.t());
    return;
  }
  const int64_t m = x.size(0), n = w.size(0), k = w.size(1), step = chunk_rows(n, k);
  const auto x_wide = widened(x), w_space = float_like(x, {step * k}), y_space = float_like(x, {m * step});
  for (int64_t first = 0; first < n; first += step) {
    const int64_t rows = std::min(step, n - first);
    const auto w_wide = dense(w_space, rows, k);
    auto y_wide = dense(y_space, m, rows);
    widen_columns(w.narrow(0, first, rows), 0, w_wide);
    at::mm_out(y_wide, x_wide, w_wide.t());
    narrow_columns(y_wide, first, y);
  }
}

void many_rows_nn(const at::Tensor& dy, const at::Tensor& w, at::Tensor dx) {
  if (!widens(dy)) {
    at::mm_out(dx, dy, w);
    return;
  }
  const int64_t m = dy.size(0), n = w.size(0), k = w.size(1), step = chunk_rows(n, k);
  const auto w_space = float_like(dy, {step * k}), dy_space = float_like(dy, {m * step});
  auto dx_wide = float_like(dy, {m, k});
  for (int64_t first = 0; first < n; first += step) {
    const int64_t rows = std::min(step, n - first);
    const auto w_wide = dense(w_space, rows, k), dy_wide = dense(dy_space, m, rows);
    widen_columns(w.narrow(0, first, rows), 0, w_wide);
    widen_columns(dy, first, dy_wide);
    if (first == 0) {
      at::mm_out(dx_wide, dy_wide, w_wide);
    } else {
      at::addmm_out(dx_wide, dx_wide, dy_wide, w_wide);
    }
  }
  narrow_columns(dx_wide, 0, dx);
}

void many_rows_wgrad(const at::Tensor& dy, const at::Tensor& x, at::Tensor main_grad) {
  if (dy.scalar_type() != at::kBFloat16) {
    at::addmm_out(main_grad, main_grad, dy.t(), x);
    return;
  }
  const int64_t m = dy.size(0), n = dy.size(1), k = x.size(1), step = chunk_rows(n, std::max(m, k));
  const auto x_wide = widened(x), dy_space = float_like(dy, {m * step});
  for (int64_t first = 0; first < n; first += step) {
    const int64_t rows = std::min(step, n - first);
    const auto dy_wide = dense(dy_space, m, rows);
    widen_columns(dy, first, dy_wide);
    auto grad = main_grad.narrow(0, first, rows);
    at::addmm_out(grad, grad, dy_wide.t(), x_wide);
  }
}

}  // namespace penteract::ops
