#include "penteract/parallel/norm.h"

#include "penteract/ops/op.h"
#include "penteract/ops/rms_norm.h"

namespace penteract::parallel {
namespace {

class RmsNorm : public ops::Op {
 public:
  RmsNorm(const Parameter& weight, double eps, WeightGradQueue* queue) : weight_(weight), eps_(eps), queue_(queue) {}
  const char* name() const override { return "rms_norm"; }

  at::Tensor forward(const at::Tensor& x, bool keep) {
    auto [y, rstd] = ops::rms_norm(x, weight_.use(), eps_);
    if (keep) save(x), save(rstd);
    return y;
  }

  std::vector<at::Tensor> backward(std::vector<at::Tensor> grads) override {
    auto [dx, dweight] = ops::rms_norm_backward(grads[0], saved(0), weight_.use(), saved(1));
    queue_->push(weight_, [dweight = dweight](at::Tensor main_grad) { main_grad.add_(dweight); });
    return {dx};
  }

 private:
  const Parameter& weight_;
  double eps_;
  WeightGradQueue* queue_;
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const Parameter& weight, double eps, WeightGradQueue* queue) {
  auto op = std::make_shared<RmsNorm>(weight, eps, queue);
  return ops::record_one(op, {x}, [&](bool keep) { return op->forward(x, keep); });
}

}  // namespace penteract::parallel
