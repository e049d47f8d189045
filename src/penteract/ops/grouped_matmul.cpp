#include "penteract/ops/grouped_matmul.h"

#include <ATen/core/grad_mode.h>

#include "penteract/ops/aten/aten.h"
#include "penteract/ops/dispatch.h"
#include "penteract/ops/product.h"
#include "penteract/precision/precision.h"

namespace penteract::ops {
namespace {

struct Groups {
  std::vector<RowGroup> few, many;
};

Groups sort_groups(const std::vector<int64_t>& counts, const at::Tensor& x, const at::Tensor& matrices) {
  PENT_CHECK(x.dim() == 2 && matrices.dim() == 3, "{} and {} dimensions", x.dim(), matrices.dim());
  check_contiguous(x, "rows");
  check_contiguous(matrices, "matrices");
  PENT_CHECK_EQ(static_cast<int64_t>(counts.size()), matrices.size(0));
  Groups groups;
  int64_t row = 0;
  for (size_t g = 0; g < counts.size(); ++g) {
    PENT_CHECK_GE(counts[g], 0);
    if (counts[g] > 0) {
      auto& list = is_few(counts[g], x.scalar_type()) ? groups.few : groups.many;
      list.push_back({row, counts[g], static_cast<int64_t>(g)});
    }
    row += counts[g];
  }
  PENT_CHECK_EQ(row, x.size(0));
  return groups;
}

at::Tensor rows_of(const at::Tensor& x, const RowGroup& group) { return x.narrow(0, group.row_first, group.count); }

}  // namespace

at::Tensor grouped_matmul_nt(const at::Tensor& x, const at::Tensor& w, const std::vector<int64_t>& counts) {
  const at::NoGradGuard no_grad;
  const auto groups = sort_groups(counts, x, w);
  check_dtype(w, x.scalar_type(), "w");
  PENT_CHECK_EQ(x.size(1), w.size(2));
  auto y = at::empty({x.size(0), w.size(1)}, x.options());
  if (y.numel() == 0) return y;
  if (use_aten(x, w)) return aten::grouped_matmul_nt(x, w, counts);
  if (!groups.few.empty()) few_rows_nt(x, w, groups.few, y);
  for (const auto& group : groups.many) many_rows_nt(rows_of(x, group), w.select(0, group.matrix), rows_of(y, group));
  return y;
}

at::Tensor grouped_matmul_nn(const at::Tensor& dy, const at::Tensor& w, const std::vector<int64_t>& counts) {
  const at::NoGradGuard no_grad;
  const auto groups = sort_groups(counts, dy, w);
  check_dtype(w, dy.scalar_type(), "w");
  PENT_CHECK_EQ(dy.size(1), w.size(1));
  auto dx = at::empty({dy.size(0), w.size(2)}, dy.options());
  if (dx.numel() == 0) return dx;
  if (use_aten(dy, w)) return aten::grouped_matmul_nn(dy, w, counts);
  if (!groups.few.empty()) few_rows_nn(dy, w, groups.few, dx);
  for (const auto& group : groups.many) {
    many_rows_nn(rows_of(dy, group), w.select(0, group.matrix), rows_of(dx, group));
  }
  return dx;
}

void grouped_wgrad_accumulate(const at::Tensor& dy, const at::Tensor& x, const std::vector<int64_t>& counts,
                              at::Tensor main_grad) {
  const at::NoGradGuard no_grad;
  const auto groups = sort_groups(counts, x, main_grad);
  check_contiguous(dy, "dy");
  check_dtype(dy, x.scalar_type(), "dy");
  check_dtype(main_grad, precision::accumulate_dtype(x.scalar_type()), "main_grad");
  PENT_CHECK(dy.dim() == 2 && dy.size(0) == x.size(0) && dy.size(1) == main_grad.size(1));
  PENT_CHECK_EQ(x.size(1), main_grad.size(2));
  if (main_grad.numel() == 0) return;
  if (use_aten(dy, x, main_grad)) return aten::grouped_wgrad_accumulate(dy, x, counts, main_grad);
  if (!groups.few.empty()) few_rows_wgrad(dy, x, groups.few, main_grad);
  for (const auto& group : groups.many) {
    many_rows_wgrad(rows_of(dy, group), rows_of(x, group), main_grad.select(0, group.matrix));
  }
}

}  // namespace penteract::ops
