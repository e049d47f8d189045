#include "penteract/parallel/embedding.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/logical_and.h>

#include "penteract/ops/op.h"
#include "penteract/ops/permute.h"

namespace penteract::parallel {
namespace {

class VocabEmbedding : public ops::Op {
 public:
  VocabEmbedding(const Parameter& weight, int64_t first, TensorParallel parallel)
      : weight_(weight), first_(first), parallel_(std::move(parallel)) {}
  const char* name() const override { return "vocab_embedding"; }

  at::Tensor forward(const at::Tensor& ids, bool keep) {
    // Ids of other ranks read row 0 and are masked to zero, so that the sum over tp has one term that counts.
    const at::Tensor local = ids - first_;
    const at::Tensor mine = at::logical_and(local.ge(0), local.lt(weight_.weight.size(0)));
    const at::Tensor row = local * mine;
    at::Tensor out = at::index_select(weight_.use(), 0, row);
    if (parallel_.tp.size() > 1) out.mul_(mine.unsqueeze(1));
    if (keep) save(row), save(mine);
    return reduce_rows(out, parallel_);
  }

  std::vector<at::Tensor> backward(std::vector<at::Tensor> grads) override {
    const at::Tensor dy = gather_rows_over_tp(grads[0], parallel_);
    const at::Tensor row = saved(0);
    const at::Tensor mine = saved(1);
    parallel_.queue->push(weight_, [dy, row, mine](at::Tensor main_grad) {
      // Rows that are held elsewhere add zeros to row 0: to leave them out would be to wait for their number.
      ops::add_rows(main_grad, row, dy.masked_fill(mine.logical_not().unsqueeze(1), 0));
    });
    return {at::Tensor()};
  }

 private:
  const Parameter& weight_;
  int64_t first_;
  TensorParallel parallel_;
};

}  // namespace

at::Tensor vocab_embedding(const at::Tensor& ids, const Parameter& weight, int64_t first, const at::Tensor& anchor,
                           const TensorParallel& parallel) {
  auto op = std::make_shared<VocabEmbedding>(weight, first, parallel);
  return ops::record_one(op, {anchor}, [&](bool keep) { return op->forward(ids, keep); });
}

}  // namespace penteract::parallel
