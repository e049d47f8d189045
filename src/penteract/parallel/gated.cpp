#include "penteract/parallel/gated.h"

#include "penteract/ops/op.h"
#include "penteract/ops/swiglu.h"

namespace penteract::parallel {
namespace {

class Gated : public ops::Op {
 public:
  const char* name() const override { return "swiglu"; }
  at::Tensor forward(const at::Tensor& gate_up, bool keep) {
    if (keep) save(gate_up, ops::SaveKind::recompute);
    return ops::swiglu(gate_up);
  }
  std::vector<at::Tensor> backward(std::vector<at::Tensor> grads) override {
    return {ops::swiglu_backward(grads[0], saved(0))};
  }
};

}  // namespace

at::Tensor gated(const at::Tensor& gate_up) {
  auto op = std::make_shared<Gated>();
  return ops::record_one(op, {gate_up}, [&](bool keep) { return op->forward(gate_up, keep); });
}

}  // namespace penteract::parallel
