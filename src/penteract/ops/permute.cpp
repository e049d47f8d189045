#include "penteract/ops/permute.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <cstring>
#include <vector>

#include "penteract/ops/aten/aten.h"
#include "penteract/ops/dispatch.h"
#include "penteract/precision/precision.h"

namespace penteract::ops {
namespace {

// Where index is on the host its values are checked and returned, else null.
const int64_t* check_index(const at::Tensor& index, int64_t lowest, int64_t bound) {
  check_contiguous(index, "index");
  check_dtype(index, at::kLong, "index");
  if (!index.is_cpu()) return nullptr;
  const auto* places = data<int64_t>(index);
  for (int64_t i = 0; i < index.numel(); ++i) {
    PENT_CHECK(places[i] >= lowest && places[i] < bound, "index[{}] = {} of {} rows", i, places[i], bound);
  }
  return places;
}

void check_rows(const at::Tensor& rows, const char* name) {
  PENT_CHECK(rows.dim() == 2, "{} has {} dimensions", name, rows.dim());
  check_contiguous(rows, name);
}

}  // namespace

at::Tensor gather_rows(const at::Tensor& x, const at::Tensor& index) {
  const at::NoGradGuard no_grad;
  check_rows(x, "x");
  const auto* places = check_index(index, 0, x.size(0));
  if (use_aten(x, index)) return aten::gather_rows(x, index);
  auto out = at::empty({index.numel(), x.size(1)}, x.options());
  const size_t row_bytes = static_cast<size_t>(x.size(1)) * x.element_size();
  if (row_bytes == 0) return out;
  const auto* from = static_cast<const char*>(x.data_ptr());
  auto* to = static_cast<char*>(out.data_ptr());
  at::parallel_for(0, index.numel(), rows_per_task(x.size(1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(to + static_cast<size_t>(i) * row_bytes, from + static_cast<size_t>(places[i]) * row_bytes,
                  row_bytes);
    }
  });
  return out;
}

at::Tensor scatter_add_rows(const at::Tensor& y, const at::Tensor& index, int64_t num_rows) {
  const at::NoGradGuard no_grad;
  check_rows(y, "y");
  PENT_CHECK_EQ(index.numel(), y.size(0));
  const auto* places = check_index(index, 0, num_rows);
  if (use_aten(y, index)) return aten::scatter_add_rows(y, index, num_rows);
  // The source rows of each target, ascending: a stable counting sort.
  std::vector<int64_t> first(static_cast<size_t>(num_rows) + 1, 0), sources(static_cast<size_t>(y.size(0)));
  for (int64_t i = 0; i < y.size(0); ++i) ++first[static_cast<size_t>(places[i]) + 1];
  for (size_t t = 0; t < static_cast<size_t>(num_rows); ++t) first[t + 1] += first[t];
  auto next = first;
  for (int64_t i = 0; i < y.size(0); ++i) sources[static_cast<size_t>(next[static_cast<size_t>(places[i])]++)] = i;

  const int64_t width = y.size(1);
  auto out = at::empty({num_rows, width}, y.options());
  with_element_type(y.scalar_type(), [&]<class T>(T) {
    std::vector<const T*> rows(sources.size());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = data<T>(y) + sources[i] * width;
    at::parallel_for(0, num_rows, rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t start = first[static_cast<size_t>(t)], count = first[static_cast<size_t>(t) + 1] - start;
        kernels<T>().row_weighted_sum(rows.data() + start, nullptr, count, data<T>(out) + t * width, width);
      }
    });
  });
  return out;
}

void add_rows(at::Tensor into, const at::Tensor& index, const at::Tensor& rows) {
  const at::NoGradGuard no_grad;
  check_rows(into, "into");
  check_rows(rows, "rows");
  check_dtype(into, precision::accumulate_dtype(rows.scalar_type()), "into");
  PENT_CHECK(index.numel() == rows.size(0) && into.size(1) == rows.size(1));
  check_index(index, 0, into.size(0));
  aten::add_rows(into, index, rows);
}

at::Tensor combine_rows(const at::Tensor& y, const at::Tensor& index, const at::Tensor& weights) {
  const at::NoGradGuard no_grad;
  check_rows(y, "y");
  check_rows(weights, "weights");
  check_dtype(weights, precision::accumulate_dtype(y.scalar_type()), "weights");
  PENT_CHECK_EQ(index.numel(), weights.numel());
  const auto* places = check_index(index, -1, y.size(0));
  if (use_aten(y, index, weights)) return aten::combine_rows(y, index, weights);
  const int64_t tokens = weights.size(0), k = weights.size(1), width = y.size(1);
  auto out = at::empty({tokens, width}, y.options());
  with_element_type(y.scalar_type(), [&]<class T>(T) {
    using A = Acc<T>;
    at::parallel_for(0, tokens, rows_per_task(width * k), [&](int64_t begin, int64_t end) {
      std::vector<const T*> rows(static_cast<size_t>(k));
      std::vector<A> of_rows(static_cast<size_t>(k));
      for (int64_t t = begin; t < end; ++t) {
        size_t count = 0;
        for (int64_t i = t * k; i < (t + 1) * k; ++i) {
          if (places[i] < 0) continue;
          rows[count] = data<T>(y) + places[i] * width;
          of_rows[count++] = data<A>(weights)[i];
        }
        kernels<T>().row_weighted_sum(rows.data(), of_rows.data(), static_cast<int64_t>(count),
                                      data<T>(out) + t * width, width);
      }
    });
  });
  return out;
}

CombineGrads combine_rows_backward(const at::Tensor& dout, const at::Tensor& y, const at::Tensor& index,
                                   const at::Tensor& weights) {
  const at::NoGradGuard no_grad;
  check_rows(y, "y");
  check_rows(dout, "dout");
  check_rows(weights, "weights");
  check_dtype(dout, y.scalar_type(), "dout");
  check_dtype(weights, precision::accumulate_dtype(y.scalar_type()), "weights");
  PENT_CHECK(dout.size(0) == weights.size(0) && dout.size(1) == y.size(1) && index.numel() == weights.numel());
  const auto* places = check_index(index, -1, y.size(0));
  std::vector<bool> named(static_cast<size_t>(y.size(0)), false);
  int64_t num_named = 0;
  for (int64_t i = 0; i < index.numel() && places != nullptr; ++i) {
    if (places[i] < 0) continue;
    PENT_CHECK(!named[static_cast<size_t>(places[i])], "row {} is named twice", places[i]);
    named[static_cast<size_t>(places[i])] = true;
    ++num_named;
  }
  if (use_aten(dout, y, index, weights)) return aten::combine_rows_backward(dout, y, index, weights);
  const int64_t k = weights.size(1), width = y.size(1);
  CombineGrads grads{num_named == y.size(0) ? at::empty(y.sizes(), y.options()) : at::zeros(y.sizes(), y.options()),
                     at::empty(weights.sizes(), weights.options())};
  with_element_type(y.scalar_type(), [&]<class T>(T) {
    using A = Acc<T>;
    at::parallel_for(0, index.numel(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        A& dweight = data<A>(grads.dweights)[i];
        dweight = 0;
        if (places[i] < 0) continue;
        const T* d = data<T>(dout) + i / k * width;
        dweight = kernels<T>().row_dot(d, data<T>(y) + places[i] * width, width);
        kernels<T>().row_weighted_sum(&d, data<A>(weights) + i, 1, data<T>(grads.dy) + places[i] * width, width);
      }
    });
  });
  return grads;
}

}  // namespace penteract::ops
