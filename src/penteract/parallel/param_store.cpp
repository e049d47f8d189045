#include "penteract/parallel/param_store.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "penteract/base/check.h"
#include "penteract/base/memory_ledger.h"
#include "penteract/base/rng.h"
#include "penteract/ops/adamw.h"
#include "penteract/parallel/host_view.h"

namespace penteract::parallel {
namespace {

using topology::Slice;

// Shards start on cache lines, so that members do not share one.
constexpr int64_t kShardUnit = 16;

std::string joined(const Fusion& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : "+") + name;
  return text;
}

template <class T>
void fill_from_doubles(const std::vector<double>& values, double scale, T* out) {
  for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<T>(values[i] * scale);
}

}  // namespace

at::Tensor FlatBuffer::grad_shard() const { return main_grad.narrow(0, shard_first, shard_count); }

ParamStore::ParamStore(const comm::RankContext& context, const spec::ModelSpec& model, const topology::RankGrid& grid,
                       const precision::Precision& precision, const std::vector<Fusion>& fusions, Holding holding)
    : table_(spec::param_table(model)),
      stage_of_layer_(or_throw(spec::stage_of_layers(grid.layout(), model.num_layers))),
      precision_(precision),
      device_(context.device) {
  lay_out(context, grid, fusions);
  allocate(holding);
}

void ParamStore::lay_out(const comm::RankContext& context, const topology::RankGrid& grid,
                         const std::vector<Fusion>& fusions) {
  const auto& layout = grid.layout();
  const topology::Coord coord = grid.coord(context.rank);
  std::map<std::string, int> index;
  for (size_t i = 0; i < table_.size(); ++i) index[table_[i].name] = static_cast<int>(i);

  // Every parameter once: as the fusion that it begins, inside the fusion of another, or alone.
  std::map<int, Fusion> fusion_of;
  std::map<int, int> leader;
  for (const Fusion& fusion : fusions) {
    fusion_of[index.at(fusion.front())] = fusion;
    for (const auto& name : fusion) leader[index.at(name)] = index.at(fusion.front());
  }
  std::map<std::pair<std::vector<int>, spec::WeightType>, size_t> buffer_of;
  auto holders_of = [&](int p) { return spec::holders(table_[p], grid, stage_of_layer_, context.rank); };
  auto place = [&](const std::vector<int>& parts) {
    const spec::Param& first = table_[parts[0]];
    const auto holders = holders_of(parts[0]);
    const auto [it, fresh] = buffer_of.try_emplace({holders, first.type}, buffers_.size());
    if (fresh) {
      buffers_.emplace_back();
      buffers_.back().group = context.make_group(holders, "holders of " + first.name);
      buffers_.back().type = first.type;
    }
    FlatBuffer& buffer = buffers_[it->second];
    Place where;
    where.buffer = it->second;
    where.flat_first = buffer.used;
    where.contributes = spec::contributes(first, layout, coord);
    std::vector<Slice> slices;
    Fusion names;
    for (int p : parts) {
      slices.push_back(spec::local_slice(table_[p], layout, coord));
      names.push_back(table_[p].name);
    }
    where.name = joined(names);
    where.shape = slices[0].size;
    const int dims = slices[0].num_dims();
    for (size_t i = 1; i < slices.size(); ++i) where.shape[dims - 2] += slices[i].size[dims - 2];
    // A fusion of 3-D parameters interleaves them expert by expert.
    const bool interleave = parts.size() > 1 && dims == 3;
    const int64_t rounds = interleave ? slices[0].size[0] : 1;
    for (int64_t e = 0; e < rounds; ++e) {
      for (size_t i = 0; i < parts.size(); ++i) {
        Slice slice = slices[i];
        if (interleave) slice.offset[0] += e, slice.size[0] = 1;
        const int64_t count = slice.num_elements();
        buffer.segments.push_back({parts[i], slice, buffer.used, count});
        buffer.used += count;
      }
    }
    places_.push_back(std::move(where));
  };

  for (int p = 0; p < static_cast<int>(table_.size()); ++p) {
    if (!spec::holds(table_[p], layout, stage_of_layer_, coord.pp)) continue;
    if (const auto it = leader.find(p); it != leader.end()) {
      // Parts of one class and one rule of contribution lie together; others stay apart.
      std::vector<int> parts;
      bool alike = true;
      for (const auto& name : fusion_of.at(it->second)) {
        parts.push_back(index.at(name));
        alike &= holders_of(parts.back()) == holders_of(parts[0]) &&
                 table_[parts.back()].type == table_[parts[0]].type &&
                 table_[parts.back()].share == table_[parts[0]].share;
      }
      if (alike) {
        if (p == it->second) place(parts);
        continue;
      }
    }
    place({p});
  }
}

void ParamStore::allocate(Holding holding) {
  for (FlatBuffer& b : buffers_) {
    const int64_t members = b.group.size();
    b.shard_count = (b.used + members * kShardUnit - 1) / (members * kShardUnit) * kShardUnit;
    b.shard_first = b.group.index() * b.shard_count;
    const auto on_device = at::TensorOptions().device(device_);
    const auto weight = on_device.dtype(b.type == spec::WeightType::compute ? precision_.compute : precision_.master);
    const auto master = on_device.dtype(precision_.master);
    {
      const MemoryKindScope kind(MemoryKind::weights);
      b.weight = at::zeros({b.shard_count * members}, weight);
    }
    if (holding == Holding::weights) continue;
    {
      const MemoryKindScope kind(MemoryKind::gradients);
      b.main_grad = at::zeros({b.shard_count * members}, master);
    }
    if (holding == Holding::weights_and_grads) continue;
    const MemoryKindScope kind(MemoryKind::optimizer);
    b.master = at::zeros({b.shard_count}, master);
    b.exp_avg = at::zeros({b.shard_count}, master);
    b.exp_avg_sq = at::zeros({b.shard_count}, master);
  }
  for (const Place& where : places_) {
    const FlatBuffer& b = buffers_[where.buffer];
    int64_t count = 1;
    for (int64_t s : where.shape) count *= s;
    Parameter parameter;
    parameter.name = where.name;
    parameter.weight = b.weight.narrow(0, where.flat_first, count).view(where.shape);
    if (b.main_grad.defined()) parameter.main_grad = b.main_grad.narrow(0, where.flat_first, count).view(where.shape);
    parameter.contributes = where.contributes;
    parameters_.push_back(std::move(parameter));
    by_name_[where.name] = &parameters_.back();
  }
}

std::vector<const Parameter*> ParamStore::get(const Fusion& names) const {
  if (const auto it = by_name_.find(joined(names)); it != by_name_.end()) return {it->second};
  std::vector<const Parameter*> parts;
  for (const auto& name : names) {
    const auto it = by_name_.find(name);
    PENT_CHECK(it != by_name_.end(), "parameter {} is not held here", name);
    parts.push_back(it->second);
  }
  return parts;
}

std::vector<OwnedPiece> ParamStore::owned_pieces(const FlatBuffer& b) const {
  std::vector<OwnedPiece> pieces;
  for (const Segment& segment : b.segments) {
    const int64_t first = std::max(segment.flat_first, b.shard_first);
    const int64_t end = std::min(segment.flat_first + segment.count, b.shard_first + b.shard_count);
    if (end <= first) continue;
    int64_t at = first - b.shard_first;
    for (Slice local : topology::slices_of_flat_range(segment.slice.size, {first - segment.flat_first, end - first})) {
      for (int d = 0; d < local.num_dims(); ++d) local.offset[d] += segment.slice.offset[d];
      const int64_t count = local.num_elements();
      pieces.push_back({segment.param, std::move(local), at, count});
      at += count;
    }
  }
  return pieces;
}

void ParamStore::init_weights(uint64_t seed) {
  std::vector<double> values;
  for (FlatBuffer& b : buffers_) {
    PENT_CHECK(b.master.defined(), "a store without masters cannot be initialised");
    b.master.zero_();
    for (const OwnedPiece& piece : owned_pieces(b)) {
      const spec::Param& param = table_[piece.param];
      at::Tensor shard = b.master.narrow(0, piece.shard_first, piece.count);
      if (param.init != spec::Init::normal) {
        shard.fill_(param.init == spec::Init::ones ? 1.0 : 0.0);
        continue;
      }
      const HostView view(shard);
      const at::Tensor& target = view.host();
      const auto key = philox_key(seed, "init " + param.name);
      const Slice whole = Slice::whole(param.shape);
      topology::for_each_run(whole, piece.slice, piece.slice, [&](int64_t global, int64_t local, int64_t count) {
        values.resize(count);
        normal_range(key, global, count, values.data());
        if (precision_.master == at::kDouble)
          fill_from_doubles(values, param.init_std, target.data_ptr<double>() + local);
        else fill_from_doubles(values, param.init_std, target.data_ptr<float>() + local);
      });
    }
    b.exp_avg.zero_();
    b.exp_avg_sq.zero_();
  }
  publish_weights();
}

Status ParamStore::load_weights(const WeightReader& read) {
  bool training = false;
  for (FlatBuffer& b : buffers_) {
    if (b.master.defined()) {
      training = true;
      for (const OwnedPiece& piece : owned_pieces(b)) {
        const HostView target(b.master.narrow(0, piece.shard_first, piece.count));
        PENT_TRY(read(table_[piece.param], piece.slice, target.host()));
      }
    } else {
      for (const Segment& segment : b.segments) {
        const HostView target(b.weight.narrow(0, segment.flat_first, segment.count));
        PENT_TRY(read(table_[segment.param], segment.slice, target.host()));
      }
    }
  }
  if (training) publish_weights();
  return {};
}

void ParamStore::publish_weights() {
  for (FlatBuffer& b : buffers_) {
    at::Tensor mine = b.weight.narrow(0, b.shard_first, b.shard_count);
    ops::round_to(b.master, mine);
    b.group.all_gather_into(mine, b.weight, {.tag = "weights"});
  }
}

void ParamStore::zero_grads() {
  for (FlatBuffer& b : buffers_) b.main_grad.zero_();
}

void ParamStore::reduce_grads() {
  for (FlatBuffer& b : buffers_) b.group.reduce_scatter_into(b.main_grad, b.grad_shard(), {.tag = "gradients"});
}

int64_t ParamStore::num_parameters() const {
  int64_t n = 0;
  for (const auto& p : table_) n += p.num_elements();
  return n;
}

}  // namespace penteract::parallel
