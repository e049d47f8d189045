#include "penteract/infer/probe.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "penteract/base/check.h"
#include "penteract/infer/collect.h"
#include "penteract/model/engine.h"
#include "penteract/spec/legality.h"

namespace penteract::infer {
namespace {

class RankProbe {
 public:
  RankProbe(const comm::RankContext& context, const spec::RunSpec& run, const ProbeInput& input,
            const ProbeOptions& options)
      : context_(context),
        run_(run),
        in_(input),
        options_(options),
        wide_(run.precision == spec::Recipe::fp64 ? at::kDouble : at::kFloat),
        engine_(context, run, options.gradients ? parallel::Holding::weights_and_grads : parallel::Holding::weights),
        num_batches_(run.global_batch / (run.micro_batch * run.layout.dp)) {}

  Status load(const checkpoint::WeightSource& weights) {
    return engine_.store().load_weights([&](const spec::Param& p, const topology::Slice& slice, const at::Tensor& out) {
      return weights.read(p.name, slice, out);
    });
  }

  // `out` is rank 0's.
  void run(const std::vector<families::HfTensor>& tensors, ProbeOutput& out) {
    model::Routes replay, record;
    std::vector<at::Tensor> logits;
    model::Taps taps;
    taps.logits = &logits;
    if (!in_.replay.empty()) {
      replay = local_routes();
      taps.replay = &replay;
    }
    if (options_.record_routes) taps.record = &record;
    double loss_sum = 0;
    int64_t num_targets = 0;
    // A batch without targets has no backward; its logits are wanted all the same.
    const bool backward = options_.gradients && in_.is_target.any().item<bool>();
    if (backward) {
      const auto result = engine_.forward_backward(reader(), taps);
      num_targets = result.target_tokens;
      loss_sum = result.loss * static_cast<double>(num_targets);
    } else {
      if (options_.gradients) engine_.store().zero_grads();
      const auto result = engine_.eval_batch(reader(), taps);
      num_targets = result.target_tokens;
      loss_sum = result.loss_sum;
    }
    if (context_.rank == 0) {
      out.num_targets = num_targets;
      out.loss = num_targets == 0 ? 0 : loss_sum / static_cast<double>(num_targets);
    }
    collect_logits(logits, out);
    if (options_.record_routes) collect_routes(record, out);
    if (options_.gradients) collect_grads(tensors, out);
  }

 private:
  int64_t rows() const { return in_.ids.size(0); }
  int64_t seq() const { return in_.ids.size(1); }
  bool lead() const { return context_.rank == 0; }

  model::TokenPlaces places(int64_t batch, bool gathered) const {
    return {engine_.batch_shape(), run_.layout, engine_.groups().coord, batch, gathered};
  }

  model::RowReader reader() const {
    return [this](int64_t row, model::Row& out) {
      if (row >= rows()) return false;
      const auto* ids = in_.ids.data_ptr<int64_t>() + row * seq();
      const auto* target = in_.is_target.data_ptr<bool>() + row * seq();
      for (int64_t i = 0; i < seq(); ++i) out.tokens[i] = static_cast<int32_t>(ids[i]);
      for (int64_t i = 0; i < seq(); ++i) out.is_target[i] = i + 1 < seq() && target[i + 1];
      return true;
    };
  }

  model::Routes local_routes() const {
    model::Routes routes(run_.model.num_layers, std::vector<at::Tensor>(num_batches_));
    for (const auto& [layer, global] : in_.replay) {
      for (int64_t b = 0; b < num_batches_; ++b) routes[layer][b] = places(b, false).to_local(global);
    }
    return routes;
  }

  // The real tokens of this rank's micro-batches as tiles of a global [batch, seq, ...] tensor, one a token.
  void add_token_tiles(int64_t tensor, const model::TokenPlaces& where, const at::Tensor& local,
                       std::vector<int64_t> offset, std::vector<Tile>& tiles) const {
    where.for_each(rows(), [&](int64_t from, int64_t row, int64_t position) {
      topology::Slice slice{offset, local.sizes().vec()};
      slice.offset[0] = row, slice.offset[1] = position;
      slice.size.insert(slice.size.begin(), 1);
      slice.size[1] = 1;
      tiles.push_back({tensor, std::move(slice), local.narrow(0, from, 1)});
    });
  }

  // One rank of each tp group and last stage holds each (token, vocabulary part).
  void collect_logits(const std::vector<at::Tensor>& logits, ProbeOutput& out) {
    std::vector<Tile> tiles;
    if (engine_.decoder().is_last_stage()) {
      for (int64_t b = 0; b < num_batches_; ++b)
        add_token_tiles(0, places(b, true), logits[b].to(at::kCPU, wide_).contiguous(),
                        {0, 0, engine_.decoder().vocab_first()}, tiles);
    }
    std::vector<at::Tensor> globals;
    if (lead()) globals.push_back(at::zeros({rows(), seq(), run_.model.vocab_size}, wide_));
    collect(context_.world, tiles, wide_, globals);
    if (lead()) out.logits = globals[0];
  }

  void collect_routes(const model::Routes& record, ProbeOutput& out) {
    std::vector<Tile> tiles;
    std::vector<at::Tensor> globals;
    std::vector<int> layers;
    for (int layer = 0; layer < run_.model.num_layers; ++layer) {
      if (!run_.model.moe_layers[layer]) continue;
      const auto index = static_cast<int64_t>(layers.size());
      layers.push_back(layer);
      if (lead()) globals.push_back(at::full({rows(), seq(), run_.model.num_experts_per_tok}, -1, at::kLong));
      for (int64_t b = 0; b < num_batches_; ++b) {
        if (record[layer][b].defined())
          add_token_tiles(index, places(b, false), record[layer][b].cpu(), {0, 0, 0}, tiles);
      }
    }
    collect(context_.world, tiles, at::kLong, globals);
    for (size_t i = 0; i < globals.size(); ++i) out.routes[layers[i]] = globals[i];
  }

  void collect_grads(const std::vector<families::HfTensor>& tensors, ProbeOutput& out) {
    auto& store = engine_.store();
    std::vector<Tile> tiles;
    for (auto& buffer : store.buffers()) {
      const at::Tensor shard = buffer.grad_shard().cpu();
      for (const auto& piece : store.owned_pieces(buffer))
        tiles.push_back({piece.param, piece.slice, shard.narrow(0, piece.shard_first, piece.count)});
    }
    std::vector<at::Tensor> globals;
    std::map<std::string, size_t> index;
    if (lead()) {
      for (const auto& param : store.table()) {
        index[param.name] = globals.size();
        globals.push_back(at::full(param.shape, std::numeric_limits<double>::quiet_NaN(), wide_));
      }
    }
    collect(context_.world, tiles, wide_, globals);
    if (!lead()) return;
    for (const auto& tensor : tensors) {
      at::Tensor part = globals[index.at(tensor.param)];
      for (int d = 0; d < tensor.slice.num_dims(); ++d)
        part = part.narrow(d, tensor.slice.offset[d], tensor.slice.size[d]);
      out.grads[tensor.name] = part.reshape(tensor.shape).contiguous();
    }
  }

  const comm::RankContext& context_;
  const spec::RunSpec& run_;
  const ProbeInput& in_;
  const ProbeOptions& options_;
  at::ScalarType wide_;
  model::Engine engine_;
  int64_t num_batches_;
};

}  // namespace

Result<ProbeOutput> probe(spec::RunSpec run, const comm::WorldOptions& world, const checkpoint::WeightSource& weights,
                          const std::vector<families::HfTensor>& tensors, const ProbeInput& input,
                          const ProbeOptions& options) {
  const int64_t rows = input.ids.size(0), dp = run.layout.dp;
  run.data.seq_length = input.ids.size(1);
  run.micro_batch = 1;
  run.global_batch = (rows + dp - 1) / dp * dp;
  run.router.balance = spec::Balance::none;
  run.router.z_coef = 0;
  PENT_TRY(spec::check_layout(run.model, run.layout));
  PENT_TRY(weights.check(spec::param_table(run.model)));
  ProbeOutput out;
  const Status status =
      comm::run_rank_threads(run.layout.num_ranks(), world, [&](comm::RankContext& context) -> Status {
        RankProbe rank(context, run, input, options);
        PENT_TRY(rank.load(weights));
        rank.run(tensors, out);
        return {};
      });
  if (!status.ok()) return status.error();
  return out;
}

}  // namespace penteract::infer
