#include "penteract/parallel/linear.h"

#include <ATen/ops/cat.h>

#include "penteract/ops/matmul.h"
#include "penteract/ops/op.h"

namespace penteract::parallel {
namespace {

class ColumnLinear : public ops::Op {
 public:
  ColumnLinear(std::vector<const Parameter*> parts, TensorParallel parallel)
      : parts_(std::move(parts)), parallel_(std::move(parallel)) {}
  const char* name() const override { return "column_linear"; }

  at::Tensor forward(const at::Tensor& x, bool keep) {
    const at::Tensor full = gather_rows_over_tp(x, parallel_);
    if (keep) save(full);
    std::vector<at::Tensor> outputs;
    for (const Parameter* part : parts_) outputs.push_back(ops::matmul_nt(full, part->use()));
    return outputs.size() == 1 ? outputs[0] : at::cat(outputs, 1);
  }

  std::vector<at::Tensor> backward(std::vector<at::Tensor> grads) override {
    const at::Tensor& x = saved(0);
    at::Tensor dx;
    int64_t column = 0;
    for (const Parameter* part : parts_) {
      const int64_t width = part->weight.size(0);
      const at::Tensor dy = parts_.size() == 1 ? grads[0] : grads[0].narrow(1, column, width).contiguous();
      const at::Tensor partial = ops::matmul_nn(dy, part->use());
      dx = dx.defined() ? dx.add_(partial) : partial;
      parallel_.queue->push(*part, [dy, x](at::Tensor main_grad) { ops::wgrad_accumulate(dy, x, main_grad); });
      column += width;
    }
    return {reduce_rows(dx, parallel_)};
  }

 private:
  std::vector<const Parameter*> parts_;
  TensorParallel parallel_;
};

class RowLinear : public ops::Op {
 public:
  RowLinear(const Parameter& weight, TensorParallel parallel) : weight_(weight), parallel_(std::move(parallel)) {}
  const char* name() const override { return "row_linear"; }

  at::Tensor forward(const at::Tensor& x, bool keep) {
    if (keep) save(x);
    return reduce_rows(ops::matmul_nt(x, weight_.use()), parallel_);
  }

  std::vector<at::Tensor> backward(std::vector<at::Tensor> grads) override {
    const at::Tensor dy = gather_rows_over_tp(grads[0], parallel_);
    const at::Tensor& x = saved(0);
    parallel_.queue->push(weight_, [dy, x](at::Tensor main_grad) { ops::wgrad_accumulate(dy, x, main_grad); });
    return {ops::matmul_nn(dy, weight_.use())};
  }

 private:
  const Parameter& weight_;
  TensorParallel parallel_;
};

}  // namespace

at::Tensor reduce_rows(at::Tensor partial, const TensorParallel& parallel) {
  if (parallel.sp) return parallel.tp.reduce_scatter_sum(partial, {.tag = "sequence parallel"});
  parallel.tp.all_reduce_sum(partial, {.tag = "tensor parallel"});
  return partial;
}

at::Tensor gather_rows_over_tp(const at::Tensor& x, const TensorParallel& parallel) {
  return parallel.sp ? parallel.tp.all_gather(x, {.tag = "sequence parallel"}) : x;
}

at::Tensor column_linear(const at::Tensor& x, const std::vector<const Parameter*>& parts,
                         const TensorParallel& parallel) {
  auto op = std::make_shared<ColumnLinear>(parts, parallel);
  return ops::record_one(op, {x}, [&](bool keep) { return op->forward(x, keep); });
}

at::Tensor row_linear(const at::Tensor& x, const Parameter& weight, const TensorParallel& parallel) {
  auto op = std::make_shared<RowLinear>(weight, parallel);
  return ops::record_one(op, {x}, [&](bool keep) { return op->forward(x, keep); });
}

}  // namespace penteract::parallel
