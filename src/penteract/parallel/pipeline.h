// Runs a pipeline rank's action list (schedule/): forwards, backwards, sends and receives of its stage.
// Thread-safety: a rank's own thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "penteract/comm/group.h"
#include "penteract/schedule/action.h"

namespace penteract::parallel {

// What a stage computes. The input is undefined on the first stage and requires grad when gradients are wanted; the
// output is the activation for the next stage, or on the last stage the scalar that the backward starts from.
using StageForward = std::function<at::Tensor(int micro_batch, const at::Tensor& input)>;

struct PipelineOptions {
  std::vector<int64_t> activation_shape;  // what travels between stages
  at::TensorOptions activation_options;   // its dtype and device
  double loss_scale = 1;                  // gradient of the last stage's scalar (1 / target tokens of the global batch)
  bool training = true;
  std::function<void()> drain_weight_grads;  // the schedule's weight_gradient action
};

// COLLECTIVE: pp (each rank its own list of one schedule). Throws what the stage or the communication throws.
void run_pipeline(const schedule::ActionList& actions, const comm::Group& pp, const StageForward& forward,
                  const PipelineOptions& options);

}  // namespace penteract::parallel
