// Runs a small model for some steps under a layout on rank threads and gathers gradients, weights, losses, norms and
// routes as global tensors, so that two layouts can be compared parameter by parameter. Each global element must have one
// owner: the gathering fails otherwise.
#pragma once

#include <ATen/ops/full.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "penteract/base/rng.h"
#include "penteract/model/engine.h"
#include "penteract/ops/aten_scope.h"
#include "penteract/spec/legality.h"
#include "penteract/train/lr_schedule.h"

namespace penteract::parity {

// The experts of each mixture-of-experts layer: int64 [rows, seq, K].
using GlobalRoutes = std::map<int, at::Tensor>;

struct LayoutRun {
  std::map<std::string, at::Tensor> grads;    // of the first step, fp64
  std::map<std::string, at::Tensor> weights;  // masters after the last step, fp64
  std::vector<double> losses, norms, aux_losses;
  std::vector<std::vector<int64_t>> expert_counts;                // of each step
  GlobalRoutes routes;                                            // of the first step
  double smallest_gap = std::numeric_limits<double>::infinity();  // RoutingStats, over the first step
  double eval_loss = 0;                                           // after the last step, on rows of their own
  int64_t eval_tokens = 0;
};

// Rows of random tokens, a pure function of (seed, step, row). Of every four rows one has a target everywhere, one has a
// single target, one has tokens but no target, and one (with `absent`) has no tokens at all.
inline model::RowReader random_rows(const spec::RunSpec& run, int64_t step, bool absent = true) {
  return [=](int64_t row, model::Row& out) {
    if (absent && row % 4 == 3) return false;
    const auto key = philox_key(run.seed, "tokens " + std::to_string(step) + " " + std::to_string(row));
    for (int64_t i = 0; i <= run.data.seq_length; ++i) {
      out.tokens[i] =
          static_cast<int32_t>(philox4x32({static_cast<uint32_t>(i), 0, 0, 0}, key)[0] % run.model.vocab_size);
    }
    for (int64_t i = 0; i < run.data.seq_length; ++i)
      out.is_target[i] = row % 4 == 1 ? i == step % run.data.seq_length : row % 4 != 2;
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

struct RunOptions {
  int64_t steps = 20;
  bool absent_rows = true;
  const GlobalRoutes* replay = nullptr;  // for the first step
  std::shared_ptr<comm::DeviceBackend> device = {};
  bool plain_aten = false;  // operators as ATen calls instead of kernels
};

inline LayoutRun run_layout(const spec::RunSpec& run, const RunOptions& options = {}) {
  LayoutRun out;
  const Status legal = spec::check_layout(run.model, run.layout, run.global_batch);
  EXPECT_TRUE(legal.ok()) << (legal.ok() ? "" : legal.error().message());
  if (!legal.ok()) return out;
  const auto table = spec::param_table(run.model);
  Gatherer grads(table), weights(table);
  for (int layer = 0; layer < run.model.num_layers; ++layer) {
    if (run.model.moe_layers[layer])
      out.routes[layer] =
          at::full({run.global_batch, run.data.seq_length, run.model.num_experts_per_tok}, -1, at::kLong);
  }
  std::mutex mutex;
  comm::WorldOptions world;
  world.deadline = std::chrono::seconds(60);
  world.check_buffers = true;
  world.device = options.device;
  const Status status =
      comm::run_rank_threads(run.layout.num_ranks(), world, [&](comm::RankContext& context) -> Status {
        std::optional<ops::AtenScope> scope;
        if (options.plain_aten) scope.emplace();
        model::Engine engine(context, run, parallel::Holding::training);
        engine.init_weights();
        const auto& coord = engine.groups().coord;
        const int64_t num_batches = run.global_batch / (run.micro_batch * run.layout.dp);
        for (int64_t step = 1; step <= options.steps; ++step) {
          model::Routes replay(run.model.num_layers, std::vector<at::Tensor>(num_batches)), record;
          auto places = [&](int64_t batch) {
            return model::TokenPlaces(engine.batch_shape(), run.layout, coord, batch, false);
          };
          model::Taps taps;
          double gap = std::numeric_limits<double>::infinity();
          if (step == 1) taps.record = &record, taps.smallest_gap = &gap;
          if (step == 1 && options.replay != nullptr) {
            taps.replay = &replay;
            for (const auto& [layer, global] : *options.replay) {
              for (int64_t b = 0; b < num_batches; ++b) replay[layer][b] = places(b).to_local(global);
            }
          }
          const auto result = engine.train_step(random_rows(run, step, options.absent_rows),
                                                train::learning_rate(run.optimizer, options.steps, step), step, taps);
          if (step == 1) {
            grads.add(engine.store(), [](parallel::FlatBuffer& b) { return b.grad_shard(); });
            const std::lock_guard lock(mutex);
            out.smallest_gap = std::min(out.smallest_gap, gap);
            for (auto& [layer, global] : out.routes) {
              for (int64_t b = 0; b < num_batches; ++b)
                if (record[layer][b].defined()) places(b).to_global(record[layer][b].cpu(), global);
            }
          }
          if (context.rank == 0) {
            out.losses.push_back(result.loss);
            out.norms.push_back(result.grad_norm);
            out.aux_losses.push_back(result.aux_loss);
            out.expert_counts.push_back(result.expert_counts);
          }
        }
        weights.add(engine.store(), [](parallel::FlatBuffer& b) { return b.master; });
        if (options.steps == 0) return {};
        const auto eval = engine.eval_batch(random_rows(run, 1000, options.absent_rows));
        if (context.rank == 0) {
          out.eval_tokens = eval.target_tokens;
          out.eval_loss = eval.loss_sum / static_cast<double>(eval.target_tokens);
        }
        return {};
      });
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
  if (!status.ok()) return out;
  if (options.steps > 0) out.grads = grads.take();
  out.weights = weights.take();
  return out;
}

// ‖a − b‖ / max(‖b‖, floor).
inline double relative_error(const at::Tensor& a, const at::Tensor& b, double floor) {
  return at::norm(a - b).item<double>() / std::max(at::norm(b).item<double>(), floor);
}

}  // namespace penteract::parity
