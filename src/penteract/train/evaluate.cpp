#include "penteract/train/evaluate.h"

#include <algorithm>

namespace penteract::train {

EvalSummary evaluate(model::Engine& engine, const data::EvalWindows& windows, int64_t max_windows,
                     const std::atomic<bool>* stop) {
  const int64_t rows = engine.batch_shape().global_rows;
  const int64_t count = max_windows == 0 ? windows.num_windows() : std::min(max_windows, windows.num_windows());
  double sum = 0;
  EvalSummary summary;
  for (int64_t batch = 0; batch * rows < count; ++batch) {
    if (stop != nullptr && engine.groups().world.agree_any(stop->load(), {.tag = "stop"})) {
      summary.interrupted = true;
      return summary;
    }
    const auto result = engine.eval_batch([&](int64_t row, model::Row& out) {
      const int64_t window = batch * rows + row;
      if (window >= count) return false;
      or_throw(windows.window(window, out.tokens.data()));
      return true;
    });
    sum += result.loss_sum;
    summary.target_tokens += result.target_tokens;
  }
  summary.num_windows = count;
  if (summary.target_tokens > 0) summary.loss = sum / static_cast<double>(summary.target_tokens);
  return summary;
}

}  // namespace penteract::train
