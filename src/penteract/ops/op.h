// The one way an operator of ours enters autograd. A step of forward runs with gradients off, saves what backward
// needs through save(), and record() ties its outputs to its inputs with one autograd node.
// Parameters are not autograd leaves: an operator with weights hands their gradients on itself (parallel/parameter.h).
// Thread-safety: an Op belongs to one rank thread. Lifetime: held by the graph; what it saved goes with the backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace penteract::ops {

// What may be done with a saved tensor between forward and backward. Counted by kind.
enum class SaveKind : uint8_t {
  keep,       // needed as it is
  recompute,  // can be made again from the inputs of its block
};

class Op {
 public:
  virtual ~Op() = default;
  virtual const char* name() const = 0;

  // The gradients of the inputs given to record(), in that order; undefined where there is none.
  // grads: those of the outputs, contiguous as they come, undefined where an output was not used.
  // Runs in the rank's own thread, gradients off.
  virtual std::vector<at::Tensor> backward(std::vector<at::Tensor> grads) = 0;

  // Drops what was saved; called by the graph after the backward.
  void release() { saved_.clear(); }

 protected:
  // Keeps a tensor (detached from the graph) for backward; returns its index.
  size_t save(const at::Tensor& tensor, SaveKind kind = SaveKind::keep);
  const at::Tensor& saved(size_t index) const;

 private:
  std::vector<at::Tensor> saved_;
};

// Computes the outputs of `op` with gradients off and, where gradients are on and an input requires one, makes op their
// author. forward(keep) returns fresh tensors and saves for backward only when keep is true. Inputs without gradient
// (integer tensors, weights) are not passed.
std::vector<at::Tensor> record(const std::shared_ptr<Op>& op, const std::vector<at::Tensor>& inputs,
                               const std::function<std::vector<at::Tensor>(bool keep)>& forward);
// The same for one output.
at::Tensor record_one(const std::shared_ptr<Op>& op, const std::vector<at::Tensor>& inputs,
                      const std::function<at::Tensor(bool keep)>& forward);

// Runs the backward from `roots` with gradients `grads` in this thread. REQUIRES: autograd's worker threads off here.
void run_backward(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& grads);

}  // namespace penteract::ops
