#include "penteract/parallel/pipeline.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <deque>
#include <map>

#include "penteract/base/check.h"
#include "penteract/ops/op.h"

namespace penteract::parallel {
namespace {

// Channels of send and receive: one a stage boundary and direction.
uint64_t forward_channel(int from_stage) { return 2 * static_cast<uint64_t>(from_stage); }
uint64_t backward_channel(int to_stage) { return 2 * static_cast<uint64_t>(to_stage) + 1; }

struct InFlight {
  at::Tensor input, output, output_grad, input_grad;
};

}  // namespace

void run_pipeline(const schedule::ActionList& actions, const comm::Group& pp, const StageForward& forward,
                  const PipelineOptions& options) {
  using schedule::ActionKind;
  const at::AutoGradMode grad(options.training);
  std::map<std::pair<int, int>, InFlight> live;  // by (stage, micro-batch)
  std::deque<comm::Handle> sends;
  auto owner = [&](int stage) { return stage % pp.size(); };
  auto receive = [&](int from, uint64_t channel, const char* tag) {
    at::Tensor t = at::empty(options.activation_shape, options.activation_options);
    pp.recv_into(t, from, channel, {.tag = tag}).wait();
    return t;
  };
  for (const auto& action : actions) {
    const int s = action.stage;
    InFlight& m = live[{s, action.micro_batch}];
    switch (action.kind) {
      case ActionKind::receive_forward:
        m.input = receive(owner(s - 1), forward_channel(s - 1), "activation");
        if (options.training) m.input.set_requires_grad(true);
        break;
      case ActionKind::forward: m.output = forward(action.micro_batch, m.input); break;
      case ActionKind::send_forward:
        sends.push_back(
            pp.send(m.output.detach().contiguous(), owner(s + 1), forward_channel(s), {.tag = "activation"}));
        break;
      case ActionKind::receive_backward:
        m.output_grad = receive(owner(s + 1), backward_channel(s), "activation gradient");
        break;
      case ActionKind::backward:
        if (!m.output_grad.defined())
          m.output_grad = at::full(m.output.sizes(), options.loss_scale, m.output.options().requires_grad(false));
        ops::run_backward({m.output}, {m.output_grad});
        m.input_grad = m.input.defined() ? m.input.grad() : at::Tensor();
        m.input = m.output = m.output_grad = at::Tensor();
        break;
      case ActionKind::send_backward:
        PENT_CHECK(m.input_grad.defined(), "{}", to_string(action));
        sends.push_back(
            pp.send(m.input_grad.contiguous(), owner(s - 1), backward_channel(s - 1), {.tag = "activation gradient"}));
        m.input_grad = at::Tensor();
        break;
      case ActionKind::weight_gradient: options.drain_weight_grads(); break;
    }
    while (!sends.empty() && sends.front().done()) {
      sends.front().wait();
      sends.pop_front();
    }
    // A forward without a backward (evaluation) is over when its output has gone.
    const bool gone =
        action.kind == ActionKind::send_forward || (action.kind == ActionKind::forward && s == pp.size() - 1);
    if (!options.training && gone) m.output = m.input = at::Tensor();
  }
  for (auto& send : sends) send.wait();
}

}  // namespace penteract::parallel
