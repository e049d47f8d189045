#include "penteract/parallel/groups.h"

namespace penteract::parallel {

Groups make_groups(const comm::RankContext& context, const topology::RankGrid& grid) {
  using topology::Axis;
  using topology::Grid;
  const int rank = context.rank;
  auto dense = [&](topology::AxisSet axes, const char* name) {
    return context.make_group(grid.group(rank, Grid::dense, axes), name);
  };
  auto expert = [&](topology::AxisSet axes, const char* name) {
    return context.make_group(grid.group(rank, Grid::expert, axes), name);
  };
  Groups g;
  g.layout = grid.layout();
  g.coord = grid.coord(rank);
  g.world = context.world;
  g.tp = dense({Axis::tp}, "tp");
  g.cp = dense({Axis::cp}, "cp");
  g.pp = dense({Axis::pp}, "pp");
  g.tp_cp = dense({Axis::tp, Axis::cp}, "tp·cp");
  g.dp_cp = dense({Axis::dp, Axis::cp}, "dp·cp");
  g.ep = expert({Axis::ep}, "ep");
  g.etp = expert({Axis::etp}, "etp");
  g.etp_ep = expert({Axis::etp, Axis::ep}, "etp·ep");
  return g;
}

}  // namespace penteract::parallel
