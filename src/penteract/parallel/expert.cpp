#include "penteract/parallel/expert.h"

#include "penteract/ops/grouped_matmul.h"
#include "penteract/ops/op.h"
#include "penteract/ops/permute.h"
#include "penteract/ops/swiglu.h"

namespace penteract::parallel {
namespace {

class MixExperts : public ops::Op {
 public:
  MixExperts(const ExpertPlan& plan, const ExpertWeights& experts, const Groups& groups, WeightGradQueue* queue)
      : plan_(plan), experts_(experts), ep_(groups.ep), etp_(groups.etp), queue_(queue) {}
  const char* name() const override { return "mix_experts"; }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& weights, bool keep) {
    const at::Tensor rows = to_owners(ops::gather_rows(x, plan_.token_of_row));
    const at::Tensor gate_up = ops::grouped_matmul_nt(rows, experts_.gate_up->use(), plan_.counts);
    const at::Tensor hidden = ops::swiglu(gate_up);
    const at::Tensor out = from_owners(ops::grouped_matmul_nt(hidden, experts_.down->use(), plan_.counts));
    if (keep) save(rows), save(gate_up), save(hidden), save(out), save(weights);
    return ops::combine_rows(out, plan_.row_of_choice, weights);
  }

  std::vector<at::Tensor> backward(std::vector<at::Tensor> grads) override {
    const at::Tensor rows = saved(0), gate_up = saved(1), hidden = saved(2);
    auto [dout, dweights] = ops::combine_rows_backward(grads[0], saved(3), plan_.row_of_choice, saved(4));
    const at::Tensor dy = to_owners(dout);
    const at::Tensor dhidden = ops::grouped_matmul_nn(dy, experts_.down->use(), plan_.counts);
    const at::Tensor dgate_up = ops::swiglu_backward(dhidden, gate_up);
    const at::Tensor drows = ops::grouped_matmul_nn(dgate_up, experts_.gate_up->use(), plan_.counts);
    const auto counts = plan_.counts;
    queue_->push(*experts_.down,
                 [dy, hidden, counts](at::Tensor g) { ops::grouped_wgrad_accumulate(dy, hidden, counts, g); });
    queue_->push(*experts_.gate_up,
                 [dgate_up, rows, counts](at::Tensor g) { ops::grouped_wgrad_accumulate(dgate_up, rows, counts, g); });
    return {ops::scatter_add_rows(from_owners(drows), plan_.token_of_row, grads[0].size(0)), dweights};
  }

 private:
  // Rows in the sender's expert order -> rows of all tokens in the owner's expert order.
  at::Tensor to_owners(const at::Tensor& rows) const {
    const at::Tensor arrived = ep_.all_to_all_v(rows, plan_.send_rows, plan_.recv_rows, {.tag = "dispatch"});
    return ops::gather_rows(etp_.all_gather_v(arrived, plan_.etp_rows, {.tag = "dispatch"}), plan_.to_expert);
  }
  // The reverse; what the etp members computed from their parts of the width is summed.
  at::Tensor from_owners(const at::Tensor& rows) const {
    const at::Tensor arrived =
        etp_.reduce_scatter_v(ops::gather_rows(rows, plan_.from_expert), plan_.etp_rows, {.tag = "combine"});
    return ep_.all_to_all_v(arrived, plan_.recv_rows, plan_.send_rows, {.tag = "combine"});
  }

  ExpertPlan plan_;
  ExpertWeights experts_;
  comm::Group ep_, etp_;
  WeightGradQueue* queue_;
};

}  // namespace

at::Tensor mix_experts(const at::Tensor& x, const at::Tensor& weights, const ExpertPlan& plan,
                       const ExpertWeights& experts, const Groups& groups, WeightGradQueue* queue) {
  auto op = std::make_shared<MixExperts>(plan, experts, groups, queue);
  return ops::record_one(op, {x, weights}, [&](bool keep) { return op->forward(x, weights, keep); });
}

}  // namespace penteract::parallel
