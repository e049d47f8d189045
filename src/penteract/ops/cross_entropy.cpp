#include "penteract/ops/cross_entropy.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "penteract/ops/aten/aten.h"
#include "penteract/ops/dispatch.h"
#include "penteract/precision/precision.h"

namespace penteract::ops {
namespace {

at::Tensor per_row(const at::Tensor& logits) {
  PENT_CHECK_EQ(logits.dim(), 2);
  check_contiguous(logits, "logits");
  return at::empty({logits.size(0)}, logits.options().dtype(precision::accumulate_dtype(logits.scalar_type())));
}

void check_row_values(const at::Tensor& values, const at::Tensor& logits, at::ScalarType dtype, const char* name) {
  check_contiguous(values, name);
  check_dtype(values, dtype, name);
  PENT_CHECK_EQ(values.numel(), logits.size(0));
}

// The place of a global id in this shard, or -1.
int64_t local_id(int64_t target, int64_t first, int64_t count) {
  return target >= first && target - first < count ? target - first : -1;
}

template <class F>
void for_rows(const at::Tensor& logits, const F& f) {
  at::parallel_for(0, logits.size(0), rows_per_task(logits.size(1)), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) f(t);
  });
}

}  // namespace

at::Tensor row_max(const at::Tensor& logits) {
  const at::NoGradGuard no_grad;
  auto out = per_row(logits);
  if (use_aten(logits)) return aten::row_max(logits);
  with_element_type(logits.scalar_type(), [&]<class T>(T) {
    for_rows(logits, [&](int64_t t) {
      data<Acc<T>>(out)[t] = kernels<T>().row_max(data<T>(logits) + t * logits.size(1), logits.size(1));
    });
  });
  return out;
}

at::Tensor row_sum_exp(const at::Tensor& logits, const at::Tensor& max) {
  const at::NoGradGuard no_grad;
  auto out = per_row(logits);
  check_row_values(max, logits, out.scalar_type(), "max");
  if (use_aten(logits, max)) return aten::row_sum_exp(logits, max);
  with_element_type(logits.scalar_type(), [&]<class T>(T) {
    using A = Acc<T>;
    for_rows(logits, [&](int64_t t) {
      const T* row = data<T>(logits) + t * logits.size(1);
      data<A>(out)[t] = kernels<T>().row_sum_exp(row, logits.size(1), data<A>(max)[t]);
    });
  });
  return out;
}

at::Tensor target_logits(const at::Tensor& logits, const at::Tensor& targets, int64_t first) {
  const at::NoGradGuard no_grad;
  auto out = per_row(logits);
  check_row_values(targets, logits, at::kLong, "targets");
  if (use_aten(logits, targets)) return aten::target_logits(logits, targets, first);
  with_element_type(logits.scalar_type(), [&]<class T>(T) {
    using A = Acc<T>;
    for (int64_t t = 0; t < logits.size(0); ++t) {
      const int64_t place = local_id(data<int64_t>(targets)[t], first, logits.size(1));
      A value = 0;
      if (place >= 0) kernels<T>().widen(data<T>(logits) + t * logits.size(1) + place, &value, 1);
      data<A>(out)[t] = value;
    }
  });
  return out;
}

void cross_entropy_backward_(at::Tensor logits, const at::Tensor& lse, const at::Tensor& targets, int64_t first,
                             const at::Tensor& dloss) {
  const at::NoGradGuard no_grad;
  PENT_CHECK_EQ(logits.dim(), 2);
  check_contiguous(logits, "logits");
  const auto accumulate = precision::accumulate_dtype(logits.scalar_type());
  check_row_values(lse, logits, accumulate, "lse");
  check_row_values(dloss, logits, accumulate, "dloss");
  check_row_values(targets, logits, at::kLong, "targets");
  if (use_aten(logits, lse, targets, dloss)) {
    return aten::cross_entropy_backward_(logits, lse, targets, first, dloss);
  }
  with_element_type(logits.scalar_type(), [&]<class T>(T) {
    using A = Acc<T>;
    for_rows(logits, [&](int64_t t) {
      const int64_t place = local_id(data<int64_t>(targets)[t], first, logits.size(1));
      T* row = data<T>(logits) + t * logits.size(1);
      kernels<T>().row_cross_entropy_backward(row, logits.size(1), data<A>(lse)[t], place, data<A>(dloss)[t]);
    });
  });
}

}  // namespace penteract::ops
