// The single description of a model's parameters: global name, shape, initialisation, which dim which axis cuts,
// grid, owner. Building, initialising, reducing, clipping, optimising, saving, loading and planning read this table;
// nothing else knows a shape or a shard rule. Thread-safety: pure functions, value types.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penteract/base/result.h"
#include "penteract/spec/model_spec.h"
#include "penteract/topology/rank_grid.h"
#include "penteract/topology/slice.h"

namespace penteract::spec {

enum class Init : uint8_t { normal, ones, zeros };

// Which part of the pipeline holds a parameter.
enum class Place : uint8_t {
  embedding,           // the first stage
  layer,               // the stage of its layer
  head,                // the last stage (final norm, output matrix)
  embedding_and_head,  // both: tied embeddings
};

// How tensor parallelism (tp of the dense grid, etp of the expert grid) cuts tp_dim.
enum class Cut : uint8_t {
  none,      // whole on every tp rank
  even,      // equal parts; the size must divide
  uneven,    // as even as possible (vocabulary)
  kv_heads,  // by heads; where tp exceeds the heads, tp ÷ heads neighbouring ranks hold the same head
};

// What a tp rank's gradient of a parameter that it shares with other tp ranks is.
enum class Share : uint8_t {
  partial,  // of its own tokens or heads: the sum over all holders is the gradient
  by_sp,    // with sequence parallelism of its own tokens, else the same on every tp rank: then tp rank 0 alone counts
};

// The type a weight is used in.
enum class WeightType : uint8_t {
  compute,  // the recipe's compute type, the rounding of the master
  master,   // the master itself (router)
};

struct Param {
  std::string name;  // global; Hugging Face's where one exists; layers keep global numbers
  std::vector<int64_t> shape;
  Init init = Init::normal;
  double init_std = 0;
  bool decay = true;    // weight decay: not on one-dimensional parameters
  bool trained = true;  // false: has no gradient; a rule of its own moves it (router bias)
  topology::Grid grid = topology::Grid::dense;
  int tp_dim = -1;  // the dim that tp (dense) or etp (expert) cuts
  Cut cut = Cut::none;
  int64_t cut_unit = 1;  // elements of tp_dim that stay together (head_dim)
  int ep_dim = -1;       // the dim that ep cuts, evenly
  Share share = Share::by_sp;
  WeightType type = WeightType::compute;
  Place place = Place::layer;
  int layer = -1;

  int64_t num_elements() const;
};

// All parameters in a fixed order: embedding, layers ascending, final norm, head.
std::vector<Param> param_table(const ModelSpec& model);

// The index of the stage (0 .. pp·vpp - 1) of each layer.
Result<std::vector<int>> stage_of_layers(const topology::Layout& layout, int num_layers);

// True when pipeline rank pp_rank holds the parameter. stage_of_layer as above.
bool holds(const Param& param, const topology::Layout& layout, const std::vector<int>& stage_of_layer, int pp_rank);

// The slice of the global tensor that a rank at `coord` stores. REQUIRES: a legal layout (legality.h).
topology::Slice local_slice(const Param& param, const topology::Layout& layout, const topology::Coord& coord);

// All ranks that hold the same slice as `rank`, ascending: the group over which its gradient is summed and its
// optimizer state sharded (the reduction class). Equal on all members.
std::vector<int> holders(const Param& param, const topology::RankGrid& grid, const std::vector<int>& stage_of_layer,
                         int rank);

// False when this rank's gradient repeats another holder's and must not be added (Share::by_sp without sp).
bool contributes(const Param& param, const topology::Layout& layout, const topology::Coord& coord);

}  // namespace penteract::spec
