// One forward, and a backward where gradients are wanted, of given tokens under any layout: logits, loss, gradients and
// the experts chosen, as global tensors. Thread-safety: not on a rank thread; starts them itself.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "penteract/checkpoint/weight_source.h"
#include "penteract/comm/world.h"
#include "penteract/families/weight_rules.h"
#include "penteract/spec/run_spec.h"

namespace penteract::infer {

// The experts chosen in each mixture-of-experts layer: int64 [batch, seq, K], by falling score.
using RouteTable = std::map<int, at::Tensor>;

struct ProbeInput {
  at::Tensor ids;        // int64 [batch, seq]
  at::Tensor is_target;  // bool [batch, seq]: the token is to be predicted from those before it; column 0 is false
  RouteTable replay;     // empty: the router chooses
};

struct ProbeOptions {
  bool gradients = false;
  bool record_routes = false;
};

struct ProbeOutput {
  at::Tensor logits;  // [batch, seq, vocab], fp32, under fp64 double
  double loss = 0;    // sum over targets ÷ their number; 0 without targets
  int64_t num_targets = 0;
  std::map<std::string, at::Tensor> grads;  // by Hugging Face name and shape, fp32, under fp64 double
  RouteTable routes;
};

// `run` names model, layout and precision; its batch is made from the input, and no auxiliary loss is
// added. `tensors`: those of the model's family. COLLECTIVE inside. Errors: those of the source and of
// comm::run_rank_threads; layout_illegal.
Result<ProbeOutput> probe(spec::RunSpec run, const comm::WorldOptions& world, const checkpoint::WeightSource& weights,
                          const std::vector<families::HfTensor>& tensors, const ProbeInput& input,
                          const ProbeOptions& options);

}  // namespace penteract::infer
