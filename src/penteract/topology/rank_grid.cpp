#include "penteract/topology/rank_grid.h"

#include "penteract/base/check.h"

namespace penteract::topology {
namespace {
constexpr std::array<Axis, 4> kDense = {Axis::tp, Axis::cp, Axis::dp, Axis::pp};
constexpr std::array<Axis, 4> kExpert = {Axis::etp, Axis::ep, Axis::edp, Axis::pp};
}  // namespace

int Coord::at(Axis axis) const {
  switch (axis) {
    case Axis::tp: return tp;
    case Axis::cp: return cp;
    case Axis::dp: return dp;
    case Axis::pp: return pp;
    case Axis::ep: return ep;
    case Axis::etp: return etp;
    case Axis::edp: return edp;
  }
  PENT_CHECK(false, "axis {}", static_cast<int>(axis));
}

Coord RankGrid::coord(int rank) const {
  PENT_CHECK(rank >= 0 && rank < num_ranks(), "rank {} of {}", rank, num_ranks());
  Coord c;
  int r = rank;
  c.tp = r % layout_.tp, r /= layout_.tp;
  c.cp = r % layout_.cp, r /= layout_.cp;
  c.dp = r % layout_.dp, r /= layout_.dp;
  c.pp = r;
  r = rank;
  c.etp = r % layout_.etp, r /= layout_.etp;
  c.ep = r % layout_.ep, r /= layout_.ep;
  c.edp = r % layout_.edp;
  return c;
}

std::vector<int> RankGrid::group(int rank, Grid grid, AxisSet axes) const {
  const auto& order = grid == Grid::dense ? kDense : kExpert;
  const Coord c = coord(rank);
  std::vector<int> ranks = {0};
  int stride = 1;
  for (Axis axis : order) {
    const int n = layout_.size(axis);
    std::vector<int> next;
    // Slower axes outermost keeps the list ascending.
    const int first = axes.has(axis) ? 0 : c.at(axis);
    const int last = axes.has(axis) ? n - 1 : c.at(axis);
    for (int i = first; i <= last; ++i) {
      for (int r : ranks) next.push_back(r + i * stride);
    }
    ranks = std::move(next);
    stride *= n;
  }
  return ranks;
}

}  // namespace penteract::topology
