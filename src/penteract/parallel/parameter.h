// A local weight matrix as the operators see it: views into a flat buffer, and the queue of weight gradients.
// Parameters are not autograd leaves: an operator's backward hands its weight gradient on through the queue.
// Thread-safety: a rank's own thread. Lifetime: views live as long as the ParamStore.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <functional>
#include <string>

namespace penteract::parallel {

struct Parameter {
  std::string name;         // the global name, or those of the fused parts joined by '+'
  at::Tensor weight;        // local shape, compute dtype (router: master dtype)
  at::Tensor main_grad;     // local shape, master dtype; the sum of contributions since zero_grads()
  bool contributes = true;  // false: another rank adds the same gradient (spec::contributes)

  // The weight, ready to be read.
  const at::Tensor& use() const { return weight; }
};

// Weight gradients that a backward leaves behind: run at once, or kept until the schedule's weight_gradient action.
class WeightGradQueue {
 public:
  // The one entry of every operator. Does nothing for a parameter that does not contribute.
  void push(const Parameter& parameter, std::function<void(at::Tensor main_grad)> accumulate);
  void set_deferred(bool deferred) { deferred_ = deferred; }
  // Runs and drops what was kept, oldest first.
  void drain();

 private:
  bool deferred_ = false;
  std::deque<std::function<void()>> pending_;
};

}  // namespace penteract::parallel
