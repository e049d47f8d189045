#include "penteract/ops/op.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include "penteract/base/check.h"

namespace penteract::ops {
namespace {

using torch::autograd::variable_list;

class OpNode : public torch::autograd::Node {
 public:
  explicit OpNode(std::shared_ptr<Op> op) : op_(std::move(op)) {}

  variable_list apply(variable_list&& grads) override {
    at::AutoGradMode off(false);
    PENT_CHECK(!done_, "{} is run backward twice", op_->name());
    for (auto& grad : grads) {
      if (grad.defined()) grad = grad.contiguous();
    }
    auto result = op_->backward(std::move(grads));
    PENT_CHECK_EQ(result.size(), static_cast<size_t>(num_outputs()));
    return result;
  }

  void release_variables() override {
    done_ = true;
    op_->release();
  }

  std::string name() const override { return op_->name(); }

 private:
  std::shared_ptr<Op> op_;
  bool done_ = false;
};

}  // namespace

size_t Op::save(const at::Tensor& tensor, SaveKind) {
  saved_.push_back(tensor.detach());
  return saved_.size() - 1;
}

const at::Tensor& Op::saved(size_t index) const {
  PENT_CHECK_LT(index, saved_.size());
  return saved_[index];
}

std::vector<at::Tensor> record(const std::shared_ptr<Op>& op, const std::vector<at::Tensor>& inputs,
                               const std::function<std::vector<at::Tensor>(bool keep)>& forward) {
  bool graph = false;
  for (const auto& input : inputs) graph |= input.requires_grad();
  graph = graph && at::GradMode::is_enabled();
  std::vector<at::Tensor> outputs;
  {
    at::AutoGradMode off(false);
    outputs = forward(graph);
  }
  if (!graph) return outputs;
  const std::shared_ptr<torch::autograd::Node> node(new OpNode(op), torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  for (auto& output : outputs) torch::autograd::set_history(output, node);
  return outputs;
}

at::Tensor record_one(const std::shared_ptr<Op>& op, const std::vector<at::Tensor>& inputs,
                      const std::function<at::Tensor(bool keep)>& forward) {
  return record(op, inputs, [&](bool keep) { return std::vector<at::Tensor>{forward(keep)}; })[0];
}

void run_backward(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& grads) {
  torch::autograd::backward(roots, grads, /*retain_graph=*/false, /*create_graph=*/false);
}

}  // namespace penteract::ops
