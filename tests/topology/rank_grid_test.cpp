#include "penteract/topology/rank_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace penteract::topology {
namespace {

RankGrid grid_of(const std::string& text) {
  return RankGrid(or_throw(complete_layout(or_throw(parse_layout(text)), 0)));
}

// The worked example of Megatron-Core's order: W = 16, tp2 cp2 dp2 pp2, etp1 ep4.
TEST(RankGrid, GroupsOfMegatronsExample) {
  const RankGrid g = grid_of("tp=2,cp=2,dp=2,pp=2,ep=4,etp=1");
  using V = std::vector<int>;
  EXPECT_EQ(g.group(0, Grid::dense, {Axis::tp}), (V{0, 1}));
  EXPECT_EQ(g.group(0, Grid::dense, {Axis::cp}), (V{0, 2}));
  EXPECT_EQ(g.group(0, Grid::dense, {Axis::dp}), (V{0, 4}));
  EXPECT_EQ(g.group(0, Grid::dense, {Axis::pp}), (V{0, 8}));
  EXPECT_EQ(g.group(0, Grid::expert, {Axis::ep}), (V{0, 1, 2, 3}));
  EXPECT_EQ(g.group(0, Grid::expert, {Axis::edp}), (V{0, 4}));
  EXPECT_EQ(g.group(13, Grid::dense, {Axis::tp, Axis::cp}), (V{12, 13, 14, 15}));
}

// Every axis of both grids cuts the world into equal groups that do not overlap, and pipeline groups agree.
TEST(RankGrid, GroupsPartitionTheWorld) {
  for (const char* text : {"tp=2,cp=3,dp=2,pp=2,ep=3,etp=2", "tp=4,pp=4", "dp=6,ep=2,etp=3", "tp=1"}) {
    const RankGrid g = grid_of(text);
    for (const auto& [grid, axis] : {std::pair{Grid::dense, Axis::tp},
                                     {Grid::dense, Axis::cp},
                                     {Grid::dense, Axis::dp},
                                     {Grid::dense, Axis::pp},
                                     {Grid::expert, Axis::etp},
                                     {Grid::expert, Axis::ep},
                                     {Grid::expert, Axis::edp},
                                     {Grid::expert, Axis::pp}}) {
      std::set<int> covered;
      for (int r = 0; r < g.num_ranks(); ++r) {
        const auto group = g.group(r, grid, {axis});
        EXPECT_EQ(static_cast<int>(group.size()), g.layout().size(axis));
        EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
        EXPECT_EQ(group[g.coord(r).at(axis)], r);
        if (group[0] == r) covered.insert(group.begin(), group.end());
      }
      EXPECT_EQ(static_cast<int>(covered.size()), g.num_ranks()) << text << " " << axis_name(axis);
    }
    for (int r = 0; r < g.num_ranks(); ++r)
      EXPECT_EQ(g.group(r, Grid::dense, {Axis::pp}), g.group(r, Grid::expert, {Axis::pp}));
  }
}

}  // namespace
}  // namespace penteract::topology
