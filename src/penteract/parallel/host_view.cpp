#include "penteract/parallel/host_view.h"

#include <ATen/ops/empty.h>

namespace penteract::parallel {

HostView::HostView(at::Tensor target)
    : target_(std::move(target)),
      host_(target_.is_cpu() ? target_ : at::empty(target_.sizes(), target_.options().device(at::kCPU))) {}

HostView::~HostView() {
  if (!target_.is_cpu()) target_.copy_(host_);
}

}  // namespace penteract::parallel
