// Coordinates and groups of a layout's ranks, in Megatron-Core's order: tp fastest, then cp, dp, pp
// (expert grid: etp, ep, edp, pp). core/parallel_state.py, order "tp-cp-ep-dp-pp". Thread-safety: immutable.
#pragma once

#include <array>
#include <vector>

#include "penteract/topology/axis.h"
#include "penteract/topology/layout.h"

namespace penteract::topology {

// The position of a rank on both grids.
struct Coord {
  int tp = 0, cp = 0, dp = 0, pp = 0;
  int ep = 0, etp = 0, edp = 0;
  int at(Axis axis) const;
};

class RankGrid {
 public:
  explicit RankGrid(Layout layout) : layout_(std::move(layout)) {}

  const Layout& layout() const { return layout_; }
  int num_ranks() const { return layout_.num_ranks(); }
  Coord coord(int rank) const;

  // All ranks that share `rank`'s coordinates on every axis of `grid` that is not in `axes`, ascending.
  // group(r, dense, {tp}) is r's tensor-parallel group. The axes must belong to the grid.
  std::vector<int> group(int rank, Grid grid, AxisSet axes) const;

 private:
  Layout layout_;
};

}  // namespace penteract::topology
