// A tensor as host memory to be written: the tensor itself on the CPU, else a copy that goes to the device at the end.
// Thread-safety: a rank's own thread.
#pragma once

#include <ATen/core/Tensor.h>

namespace penteract::parallel {

class HostView {
 public:
  // What the tensor held before is not there: all of it is to be written.
  explicit HostView(at::Tensor target);
  ~HostView();
  HostView(const HostView&) = delete;
  HostView& operator=(const HostView&) = delete;

  const at::Tensor& host() const { return host_; }

 private:
  at::Tensor target_, host_;
};

}  // namespace penteract::parallel
