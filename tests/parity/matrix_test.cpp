// What the matrix promises to hold.
#include "parity/matrix.h"

#include <set>

namespace penteract::parity {
namespace {

using topology::Axis;

// The axes above 1, with edp only where nothing of the dense grid explains it: pp and the dense axes, ep and etp.
std::set<Axis> axes_of(const topology::Layout& l) {
  std::set<Axis> axes;
  for (Axis axis : {Axis::tp, Axis::cp, Axis::dp, Axis::pp, Axis::ep, Axis::etp}) {
    if (l.size(axis) > 1) axes.insert(axis);
  }
  return axes;
}

TEST(Matrix, HoldsEveryAxisEveryPairAndAllFive) {
  std::set<std::string> layouts;
  std::set<std::set<Axis>> sets;
  std::map<Axis, std::set<int>> alone;
  std::set<std::pair<Axis, Axis>> pairs;
  int five = 0, empty_stages = 0, uneven = 0;
  for (const Case& c : matrix()) {
    const auto run = run_of(c);
    const auto& l = run.layout;
    ASSERT_TRUE(spec::check_layout(run.model, l, c.global_batch).ok()) << c.layout;
    EXPECT_LE(l.num_ranks(), 16) << c.layout;
    layouts.insert(topology::to_string(l));
    const auto axes = axes_of(l);
    sets.insert(axes);
    // ep and etp live on ranks of the dense grid: alone means with one dense axis that they fill.
    if (axes.size() == 1) alone[*axes.begin()].insert(l.size(*axes.begin()));
    if (axes.size() == 2 && l.pp == 1 && l.edp == 1) {
      if (l.ep > 1) alone[Axis::ep].insert(l.ep);
      if (l.etp > 1) alone[Axis::etp].insert(l.etp);
    }
    for (Axis a : axes) {
      for (Axis b : axes) pairs.emplace(a, b);
    }
    five += l.tp > 1 && l.pp > 1 && l.cp > 1 && l.dp > 1 && l.ep > 1;
    const auto stages = or_throw(topology::layers_per_stage(l, run.model.num_layers));
    empty_stages += std::count(stages.begin(), stages.end(), 0) > 0;
    uneven += *std::max_element(stages.begin(), stages.end()) - *std::min_element(stages.begin(), stages.end()) > 1;
  }
  EXPECT_GE(layouts.size(), 60u);
  for (Axis axis : {Axis::tp, Axis::cp, Axis::dp, Axis::pp, Axis::ep, Axis::etp}) {
    EXPECT_TRUE(alone[axis].contains(2) && alone[axis].size() >= 2) << topology::axis_name(axis);
    for (Axis other : {Axis::tp, Axis::cp, Axis::dp, Axis::pp, Axis::ep, Axis::etp})
      EXPECT_TRUE(pairs.contains({axis, other})) << topology::axis_name(axis) << " with " << topology::axis_name(other);
  }
  // Two axes of the dense grid and nothing else.
  for (Axis a : {Axis::tp, Axis::cp, Axis::dp, Axis::pp}) {
    for (Axis b : {Axis::tp, Axis::cp, Axis::dp, Axis::pp})
      EXPECT_TRUE(sets.contains({a, b})) << topology::axis_name(a) << " and " << topology::axis_name(b);
  }
  EXPECT_GE(five, 5);
  EXPECT_GE(empty_stages, 3);
  EXPECT_GE(uneven, 3);
}

}  // namespace
}  // namespace penteract::parity
