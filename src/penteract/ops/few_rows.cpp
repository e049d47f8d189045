#include <ATen/Parallel.h>

#include <algorithm>

#include "penteract/ops/dispatch.h"
#include "penteract/ops/product.h"
#include "penteract/precision/precision.h"

namespace penteract::ops {
namespace {

// Weight rows, and columns for the input gradient, of one task. Their order of summation is the same for any split.
constexpr int64_t kRowsPerTask = 128, kColumnsPerTask = 256;

struct Task {
  RowGroup group;
  int64_t first, last;
};

std::vector<Task> cut(const std::vector<RowGroup>& groups, int64_t extent, int64_t step) {
  std::vector<Task> tasks;
  tasks.reserve(groups.size() * static_cast<size_t>((extent + step - 1) / step));
  for (const auto& group : groups) {
    for (int64_t first = 0; first < extent; first += step) {
      tasks.push_back({group, first, std::min(extent, first + step)});
    }
  }
  return tasks;
}

template <class F>
void for_tasks(const std::vector<Task>& tasks, const F& f) {
  at::parallel_for(0, static_cast<int64_t>(tasks.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(tasks[static_cast<size_t>(i)]);
  });
}

// The rows in the accumulate dtype: the tensor itself where it has that dtype.
at::Tensor widened(const at::Tensor& x) {
  const auto accumulate = precision::accumulate_dtype(x.scalar_type());
  if (x.scalar_type() == accumulate) return x;
  const auto out = at::empty(x.sizes(), x.options().dtype(accumulate));
  kernels<Bf16>().widen(data<Bf16>(x), data<float>(out), x.numel());
  return out;
}

}  // namespace

void few_rows_nt(const at::Tensor& x, const at::Tensor& w, const std::vector<RowGroup>& groups, const at::Tensor& y) {
  const int64_t n = w.size(1), k = w.size(2);
  const auto wide = widened(x);
  with_element_type(x.scalar_type(), [&]<class T>(T) {
    const auto* xs = data<Acc<T>>(wide);
    const auto* ws = data<T>(w);
    auto* ys = data<T>(y);
    for_tasks(cut(groups, n, kRowsPerTask), [&](const Task& task) {
      const auto& group = task.group;
      kernels<T>().few_nt(xs + group.row_first * k, group.count, ws + group.matrix * n * k, task.first, task.last, k,
                          ys + group.row_first * n, n);
    });
  });
}

void few_rows_nn(const at::Tensor& dy, const at::Tensor& w, const std::vector<RowGroup>& groups, const at::Tensor& dx) {
  const int64_t n = w.size(1), k = w.size(2);
  const auto wide = widened(dy);
  with_element_type(dy.scalar_type(), [&]<class T>(T) {
    const auto* ds = data<Acc<T>>(wide);
    const auto* ws = data<T>(w);
    auto* dxs = data<T>(dx);
    for_tasks(cut(groups, k, kColumnsPerTask), [&](const Task& task) {
      const auto& group = task.group;
      kernels<T>().few_nn(ds + group.row_first * n, group.count, ws + group.matrix * n * k, n, k, task.first, task.last,
                          dxs + group.row_first * k);
    });
  });
}

void few_rows_wgrad(const at::Tensor& dy, const at::Tensor& x, const std::vector<RowGroup>& groups,
                    const at::Tensor& main_grad) {
  const int64_t n = main_grad.size(1), k = main_grad.size(2);
  const auto wide_dy = widened(dy), wide_x = widened(x);
  with_element_type(dy.scalar_type(), [&]<class T>(T) {
    using A = Acc<T>;
    const auto* ds = data<A>(wide_dy);
    const auto* xs = data<A>(wide_x);
    auto* gs = data<A>(main_grad);
    for_tasks(cut(groups, n, kRowsPerTask), [&](const Task& task) {
      const auto& group = task.group;
      kernels<T>().few_wgrad(ds + group.row_first * n, xs + group.row_first * k, group.count, n, k, task.first,
                             task.last, gs + group.matrix * n * k);
    });
  });
}

}  // namespace penteract::ops
