#include "penteract/parallel/parameter.h"

namespace penteract::parallel {

void WeightGradQueue::push(const Parameter& parameter, std::function<void(at::Tensor)> accumulate) {
  if (!parameter.contributes) return;
  if (!deferred_) return accumulate(parameter.main_grad);
  pending_.push_back([accumulate = std::move(accumulate), main_grad = parameter.main_grad] { accumulate(main_grad); });
}

void WeightGradQueue::drain() {
  while (!pending_.empty()) {
    pending_.front()();
    pending_.pop_front();
  }
}

}  // namespace penteract::parallel
