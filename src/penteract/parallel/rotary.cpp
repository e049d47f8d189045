#include "penteract/parallel/rotary.h"

#include "penteract/ops/op.h"

namespace penteract::parallel {
namespace {

class Rotary : public ops::Op {
 public:
  explicit Rotary(const ops::RopeTables& tables) : tables_(tables) {}
  const char* name() const override { return "rotary"; }
  at::Tensor forward(const at::Tensor& x) const { return ops::rope(x, tables_); }
  std::vector<at::Tensor> backward(std::vector<at::Tensor> grads) override {
    return {ops::rope(grads[0], tables_, true)};
  }

 private:
  ops::RopeTables tables_;
};

}  // namespace

at::Tensor rotary(const at::Tensor& x, const ops::RopeTables& tables) {
  auto op = std::make_shared<Rotary>(tables);
  return ops::record_one(op, {x}, [&](bool) { return op->forward(x); });
}

}  // namespace penteract::parallel
