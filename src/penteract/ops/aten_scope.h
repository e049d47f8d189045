// Which of its two forms an operator runs: the kernels of this folder, for tensors of the CPU, or plain ATen calls
// (aten/aten.h), for tensors of any device. Thread-safety: a scope concerns the thread that opened it.
#pragma once

#include <cstdint>

namespace penteract::ops {

// While one is open, the operators called in this thread run as plain ATen calls on the CPU too: for tests, and to find
// out whether a kernel is at fault.
class AtenScope {
 public:
  // Elements of one temporary in the accumulate dtype, about: what would need more is done in passes. 256 MiB of float.
  static constexpr int64_t kElementsPerPass = int64_t{1} << 26;

  explicit AtenScope(int64_t elements_per_pass = kElementsPerPass) : outer_(elements_per_pass_) {
    ++depth_;
    elements_per_pass_ = elements_per_pass;
  }
  ~AtenScope() {
    --depth_;
    elements_per_pass_ = outer_;
  }
  AtenScope(const AtenScope&) = delete;
  AtenScope& operator=(const AtenScope&) = delete;

  static bool is_open() { return depth_ > 0; }
  static int64_t elements_per_pass() { return elements_per_pass_; }

 private:
  static inline thread_local int depth_ = 0;
  static inline thread_local int64_t elements_per_pass_ = kElementsPerPass;
  int64_t outer_;
};

}  // namespace penteract::ops
