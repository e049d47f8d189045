#include "penteract/spec/param_table.h"

#include <fmt/format.h>

#include "penteract/base/check.h"

namespace penteract::spec {
namespace {

using topology::Coord;
using topology::Grid;
using topology::Layout;
using topology::Range;
using topology::Slice;

Param matrix(const ModelSpec& m, std::string name, std::vector<int64_t> shape, int layer) {
  Param p;
  p.name = std::move(name);
  p.shape = std::move(shape);
  p.init = Init::normal;
  p.init_std = m.initializer_range;
  p.layer = layer;
  return p;
}

Param vector(std::string name, int64_t size, int layer) {
  Param p;
  p.name = std::move(name);
  p.shape = {size};
  p.init = Init::ones;
  p.decay = false;
  p.layer = layer;
  return p;
}

Param cut(Param p, int dim, Cut how, int64_t unit = 1) {
  p.tp_dim = dim;
  p.cut = how;
  p.cut_unit = unit;
  p.share = Share::partial;
  return p;
}

Param expert(Param p, int etp_dim) {
  p.grid = Grid::expert;
  p.ep_dim = 0;
  return cut(std::move(p), etp_dim, Cut::even);
}

void add_attention(const ModelSpec& m, int layer, const std::string& prefix, std::vector<Param>& table) {
  const int64_t h = m.hidden_size, d = m.head_dim;
  const std::string attn = prefix + "self_attn.";
  table.push_back(cut(matrix(m, attn + "q_proj.weight", {m.num_heads * d, h}, layer), 0, Cut::even, d));
  table.push_back(cut(matrix(m, attn + "k_proj.weight", {m.num_kv_heads * d, h}, layer), 0, Cut::kv_heads, d));
  table.push_back(cut(matrix(m, attn + "v_proj.weight", {m.num_kv_heads * d, h}, layer), 0, Cut::kv_heads, d));
  table.push_back(cut(matrix(m, attn + "o_proj.weight", {h, m.num_heads * d}, layer), 1, Cut::even, d));
  if (m.qk_norm) {
    // Each tp rank saw its own heads only, with or without sequence parallelism.
    for (const char* which : {"q_norm.weight", "k_norm.weight"}) {
      Param p = vector(attn + which, d, layer);
      p.share = Share::partial;
      table.push_back(std::move(p));
    }
  }
}

void add_mlp(const ModelSpec& m, int layer, const std::string& prefix, std::vector<Param>& table) {
  const int64_t h = m.hidden_size;
  const std::string mlp = prefix + "mlp.";
  if (!m.moe_layers[layer]) {
    const int64_t i = m.intermediate_size;
    table.push_back(cut(matrix(m, mlp + "gate_proj.weight", {i, h}, layer), 0, Cut::even));
    table.push_back(cut(matrix(m, mlp + "up_proj.weight", {i, h}, layer), 0, Cut::even));
    table.push_back(cut(matrix(m, mlp + "down_proj.weight", {h, i}, layer), 1, Cut::even));
    return;
  }
  const int64_t e = m.num_experts, i = m.moe_intermediate_size;
  Param router = matrix(m, mlp + "gate.weight", {e, h}, layer);
  router.type = WeightType::master;
  table.push_back(std::move(router));
  if (m.router_bias) {
    Param bias = vector(mlp + "gate.e_score_correction_bias", e, layer);
    bias.init = Init::zeros;
    bias.type = WeightType::master;
    bias.trained = false;
    table.push_back(std::move(bias));
  }
  table.push_back(expert(matrix(m, mlp + "experts.gate_proj.weight", {e, i, h}, layer), 1));
  table.push_back(expert(matrix(m, mlp + "experts.up_proj.weight", {e, i, h}, layer), 1));
  table.push_back(expert(matrix(m, mlp + "experts.down_proj.weight", {e, h, i}, layer), 2));
}

// The part of tp_dim that tensor-parallel rank `index` of `parts` stores.
Range cut_range(const Param& p, int64_t parts, int64_t index) {
  const int64_t size = p.shape[p.tp_dim];
  if (p.cut == Cut::uneven) return topology::even_part(size, parts, index);
  const int64_t units = size / p.cut_unit;
  if (p.cut == Cut::kv_heads && parts > units) {
    PENT_CHECK_EQ(parts % units, 0);
    return {index / (parts / units) * p.cut_unit, p.cut_unit};
  }
  PENT_CHECK(size % (parts * p.cut_unit) == 0, "{}: {} in units of {} over {} ranks", p.name, size, p.cut_unit, parts);
  return {index * (size / parts), size / parts};
}

}  // namespace

int64_t Param::num_elements() const {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}

std::vector<Param> param_table(const ModelSpec& m) {
  PENT_CHECK_EQ(static_cast<int>(m.moe_layers.size()), m.num_layers);
  std::vector<Param> table;
  Param embedding = cut(matrix(m, "model.embed_tokens.weight", {m.vocab_size, m.hidden_size}, -1), 0, Cut::uneven);
  embedding.place = m.tie_embeddings ? Place::embedding_and_head : Place::embedding;
  table.push_back(std::move(embedding));
  for (int layer = 0; layer < m.num_layers; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    table.push_back(vector(prefix + "input_layernorm.weight", m.hidden_size, layer));
    add_attention(m, layer, prefix, table);
    table.push_back(vector(prefix + "post_attention_layernorm.weight", m.hidden_size, layer));
    add_mlp(m, layer, prefix, table);
  }
  Param final_norm = vector("model.norm.weight", m.hidden_size, -1);
  final_norm.place = Place::head;
  table.push_back(std::move(final_norm));
  if (!m.tie_embeddings) {
    Param head = cut(matrix(m, "lm_head.weight", {m.vocab_size, m.hidden_size}, -1), 0, Cut::uneven);
    head.place = Place::head;
    table.push_back(std::move(head));
  }
  return table;
}

Result<std::vector<int>> stage_of_layers(const Layout& layout, int num_layers) {
  PENT_ASSIGN(const std::vector<int> counts, topology::layers_per_stage(layout, num_layers));
  std::vector<int> stage;
  for (size_t s = 0; s < counts.size(); ++s) stage.insert(stage.end(), counts[s], static_cast<int>(s));
  return stage;
}

bool holds(const Param& p, const Layout& layout, const std::vector<int>& stage_of_layer, int pp_rank) {
  const int last = (layout.num_stages() - 1) % layout.pp;
  switch (p.place) {
    case Place::embedding: return pp_rank == 0;
    case Place::layer: return stage_of_layer[p.layer] % layout.pp == pp_rank;
    case Place::head: return pp_rank == last;
    case Place::embedding_and_head: return pp_rank == 0 || pp_rank == last;
  }
  PENT_CHECK(false, "place {}", static_cast<int>(p.place));
}

Slice local_slice(const Param& p, const Layout& layout, const Coord& coord) {
  Slice slice = Slice::whole(p.shape);
  const bool dense = p.grid == Grid::dense;
  if (p.tp_dim >= 0) {
    const Range range = cut_range(p, dense ? layout.tp : layout.etp, dense ? coord.tp : coord.etp);
    slice.offset[p.tp_dim] = range.first;
    slice.size[p.tp_dim] = range.count;
  }
  if (p.ep_dim >= 0) {
    PENT_CHECK_EQ(p.shape[p.ep_dim] % layout.ep, 0);
    const int64_t part = p.shape[p.ep_dim] / layout.ep;
    slice.offset[p.ep_dim] = coord.ep * part;
    slice.size[p.ep_dim] = part;
  }
  return slice;
}

std::vector<int> holders(const Param& p, const topology::RankGrid& grid, const std::vector<int>& stage_of_layer,
                         int rank) {
  const Layout& layout = grid.layout();
  const Slice mine = local_slice(p, layout, grid.coord(rank));
  std::vector<int> ranks;
  for (int r = 0; r < grid.num_ranks(); ++r) {
    const Coord c = grid.coord(r);
    if (holds(p, layout, stage_of_layer, c.pp) && local_slice(p, layout, c) == mine) ranks.push_back(r);
  }
  return ranks;
}

bool contributes(const Param& p, const Layout& layout, const Coord& coord) {
  if (p.share == Share::partial || layout.sp) return true;
  return coord.tp == 0;
}

}  // namespace penteract::spec
