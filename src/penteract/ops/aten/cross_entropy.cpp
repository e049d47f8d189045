#include <limits>

#include "penteract/ops/aten/aten.h"
#include "penteract/ops/aten/passes.h"
#include "penteract/precision/precision.h"

namespace penteract::ops::aten {
namespace {

at::ScalarType accumulate_of(const at::Tensor& logits) { return precision::accumulate_dtype(logits.scalar_type()); }

// One number a row, not set.
at::Tensor per_row(const at::Tensor& logits) {
  return at::empty({logits.size(0)}, logits.options().dtype(accumulate_of(logits)));
}

// The column of each row's target, some column for a row whose target is elsewhere; and which rows have theirs here.
struct Places {
  at::Tensor column, here;  // [T,1]
};
Places places_of(const at::Tensor& targets, int64_t first, int64_t width) {
  return {(targets - first).clamp_(0, width - 1).unsqueeze(1),
          targets.ge(first).logical_and_(targets.lt(first + width)).unsqueeze(1)};
}

}  // namespace

at::Tensor row_max(const at::Tensor& logits) {
  if (logits.size(1) == 0) return per_row(logits).fill_(-std::numeric_limits<double>::infinity());
  return logits.amax(1).to(accumulate_of(logits));
}

at::Tensor row_sum_exp(const at::Tensor& logits, const at::Tensor& max) {
  const auto sum = per_row(logits);
  for_passes(logits.size(0), logits.size(1), [&](int64_t first, int64_t count) {
    const auto wide = logits.narrow(0, first, count).to(accumulate_of(logits));
    sum.narrow(0, first, count).copy_((wide - max.narrow(0, first, count).unsqueeze(1)).exp_().sum(1));
  });
  return sum;
}

at::Tensor target_logits(const at::Tensor& logits, const at::Tensor& targets, int64_t first) {
  if (logits.size(1) == 0) return per_row(logits).zero_();
  const auto [column, here] = places_of(targets, first, logits.size(1));
  return logits.gather(1, column).to(accumulate_of(logits)).masked_fill(here.logical_not(), 0).squeeze(1);
}

void cross_entropy_backward_(const at::Tensor& logits, const at::Tensor& lse, const at::Tensor& targets, int64_t first,
                             const at::Tensor& dloss) {
  const int64_t width = logits.size(1);
  if (width == 0) return;
  const auto dtype = accumulate_of(logits);
  for_passes(logits.size(0), width, [&](int64_t row, int64_t count) {
    const auto rows = [&](const at::Tensor& x) { return x.narrow(0, row, count); };
    const auto [column, here] = places_of(rows(targets), first, width);
    const auto scale = rows(dloss).unsqueeze(1);
    const auto grad = (rows(logits).to(dtype) - rows(lse).unsqueeze(1)).exp_();
    grad.scatter_(1, column, grad.gather(1, column) - here.to(dtype));
    // A NaN in a row that counts nothing stays out of the gradient.
    rows(logits).copy_(grad.mul_(scale).masked_fill_(scale.eq(0), 0));
  });
}

}  // namespace penteract::ops::aten
