// Runs a small model for some steps under a layout on rank threads and gathers gradients, weights, losses and norms as
// global tensors, so that two layouts can be compared parameter by parameter. Each global element must have one owner:
// the gathering fails otherwise.
#pragma once

#include <ATen/ops/full.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "penteract/base/rng.h"
#include "penteract/spec/legality.h"
#include "penteract/train/engine.h"
#include "penteract/train/lr_schedule.h"

namespace penteract::parity {

struct LayoutRun {
  std::map<std::string, at::Tensor> grads;    // of the first step, fp64
  std::map<std::string, at::Tensor> weights;  // masters after the last step, fp64
  std::vector<double> losses, norms, aux_losses;
  double eval_loss = 0;  // after the last step, on rows of their own
  int64_t eval_tokens = 0;
};

// Rows of random tokens, a pure function of (seed, step, row); row `empty_row` of each step has no tokens at all.
inline train::RowReader random_rows(const spec::RunSpec& run, int64_t step, int64_t empty_row = -1) {
  return [=](int64_t row, int32_t* tokens) {
    if (row == empty_row) return false;
    const auto key = philox_key(run.seed, "tokens " + std::to_string(step) + " " + std::to_string(row));
    for (int64_t i = 0; i <= run.data.seq_length; ++i) {
      tokens[i] = static_cast<int32_t>(philox4x32({static_cast<uint32_t>(i), 0, 0, 0}, key)[0] % run.model.vocab_size);
    }
    return true;
  };
}

// Copies this rank's shards of `pick(buffer)` into global tensors.
class Gatherer {
 public:
  explicit Gatherer(const std::vector<spec::Param>& table) : table_(table) {
    for (const auto& p : table) {
      values_[p.name] = at::zeros(p.shape, at::kDouble);
      owners_[p.name] = at::zeros(p.shape, at::kLong);
    }
  }

  void add(parallel::ParamStore& store, const std::function<at::Tensor(parallel::FlatBuffer&)>& pick) {
    const std::lock_guard lock(mutex_);
    for (auto& buffer : store.buffers()) {
      const at::Tensor shard = pick(buffer);
      for (const auto& piece : store.owned_pieces(buffer)) {
        at::Tensor value = values_.at(table_[piece.param].name), owner = owners_.at(table_[piece.param].name);
        for (int d = 0; d < piece.slice.num_dims(); ++d) {
          value = value.narrow(d, piece.slice.offset[d], piece.slice.size[d]);
          owner = owner.narrow(d, piece.slice.offset[d], piece.slice.size[d]);
        }
        value.copy_(shard.narrow(0, piece.shard_first, piece.count).view(piece.slice.size));
        owner.add_(1);
      }
    }
  }

  // Fails the test where an element has no owner or several.
  std::map<std::string, at::Tensor> take() {
    for (const auto& [name, owner] : owners_)
      EXPECT_TRUE(owner.eq(1).all().item<bool>()) << name << " is not owned exactly once";
    return values_;
  }

 private:
  std::vector<spec::Param> table_;
  std::mutex mutex_;
  std::map<std::string, at::Tensor> values_, owners_;
};

inline LayoutRun run_layout(const spec::RunSpec& run, int64_t steps, int64_t empty_row = -1) {
  LayoutRun out;
  const Status legal = spec::check_layout(run.model, run.layout, run.global_batch);
  EXPECT_TRUE(legal.ok()) << (legal.ok() ? "" : legal.error().message());
  if (!legal.ok()) return out;
  const auto table = spec::param_table(run.model);
  Gatherer grads(table), weights(table);
  comm::WorldOptions options;
  options.deadline = std::chrono::seconds(60);
  options.check_buffers = true;
  const Status status =
      comm::run_rank_threads(run.layout.num_ranks(), options, [&](comm::RankContext& context) -> Status {
        train::Engine engine(context, run, true);
        engine.init_weights();
        for (int64_t step = 1; step <= steps; ++step) {
          const auto rows = random_rows(run, step, empty_row);
          const double lr = train::learning_rate(run.optimizer, steps, step);
          const auto result = engine.forward_backward(rows);
          if (step == 1) grads.add(engine.store(), [](parallel::FlatBuffer& b) { return b.grad_shard(); });
          if (context.rank == 0) {
            out.losses.push_back(result.loss);
            out.norms.push_back(result.grad_norm);
            out.aux_losses.push_back(result.aux_loss);
          }
          if (!result.nonfinite) parallel::adamw_update(engine.store(), run.optimizer, lr, step, result.grad_norm);
        }
        weights.add(engine.store(), [](parallel::FlatBuffer& b) { return b.master; });
        const auto eval = engine.eval_batch(random_rows(run, 1000, empty_row));
        if (context.rank == 0) {
          out.eval_tokens = eval.target_tokens;
          out.eval_loss = eval.loss_sum / static_cast<double>(eval.target_tokens);
        }
        return {};
      });
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
  if (!status.ok()) return out;
  if (steps > 0) out.grads = grads.take();
  out.weights = weights.take();
  return out;
}

// ‖a − b‖ / max(‖b‖, floor).
inline double relative_error(const at::Tensor& a, const at::Tensor& b, double floor) {
  return at::norm(a - b).item<double>() / std::max(at::norm(b).item<double>(), floor);
}

}  // namespace penteract::parity
