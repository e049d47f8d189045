#include "penteract/train/progress.h"

#include <fmt/format.h>

#include "penteract/base/log.h"
#include "penteract/base/text.h"

namespace penteract::train {

void Progress::step(const StepLine& line, int64_t num_steps) {
  mean_step_ms_ = mean_step_ms_ == 0 ? line.step_ms : 0.8 * mean_step_ms_ + 0.2 * line.step_ms;
  const double left_s = static_cast<double>(num_steps - line.step) * mean_step_ms_ / 1e3;
  if (line.result.nonfinite) {
    log_warning("step {}/{}: gradients are not finite; the step is skipped on every rank ({} so far)", line.step,
                num_steps, line.skipped);
    return;
  }
  if (line.result.target_tokens == 0) {
    log_warning("step {}/{}: the batch has no target tokens; nothing to learn ({} skipped so far)", line.step,
                num_steps, line.skipped);
    return;
  }
  log_info("step {}/{}  loss {:.4f}  grad {:.3f}  lr {:.3g}  {:.0f} tokens/s  {:.1f} s  left {}", line.step, num_steps,
           line.result.loss, line.result.grad_norm, line.lr, line.tokens_per_s, line.step_ms / 1e3,
           format_seconds(left_s));
}

}  // namespace penteract::train
