// Layouts drawn at random among those that a model can take. Draws are a function of the generator's state alone, equal
// on every machine (no std:: distribution). Needs no libtorch; header only, for tests/support/*.cpp belongs to libtorch's
// tests. Thread-safety: pure functions of their arguments.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "penteract/base/check.h"
#include "penteract/spec/legality.h"
#include "penteract/topology/layout.h"

namespace penteract::testing {

// A whole number of 0 .. n - 1, by the remainder: of no use where n is near 2^64.   REQUIRES: n >= 1
inline int draw_below(int n, std::mt19937_64& rng) { return static_cast<int>(rng() % static_cast<uint64_t>(n)); }

// num_layers as num_stages numbers of at least 1, each such split equally likely.   REQUIRES: num_stages <= num_layers
inline std::vector<int> random_split(int num_layers, int num_stages, std::mt19937_64& rng) {
  PENT_CHECK(num_stages >= 1 && num_stages <= num_layers, "{} stages of {} layers", num_stages, num_layers);
  std::vector<int> ends(num_layers - 1);
  for (int i = 0; i < num_layers - 1; ++i) ends[i] = i + 1;
  for (int i = 0; i < num_stages - 1; ++i) std::swap(ends[i], ends[i + draw_below(num_layers - 1 - i, rng)]);
  ends.resize(num_stages - 1);
  std::sort(ends.begin(), ends.end());
  ends.push_back(num_layers);
  std::vector<int> split;
  for (int first = 0; int end : ends) {
    split.push_back(end - first);
    first = end;
  }
  return split;
}

// A layout of at most max_ranks ranks that spec::check_layout accepts for `model` and global_batch (0: not looked at).
// Every axis may come with every size that is legal, also odd ones; sp is drawn where it is free; a split is given or
// left to the default, half of the time each. vpp and schedule keep their defaults.
// A single draw is often small: draw some tens, and a loop sees every axis, alone and with others.
// REQUIRES: max_ranks >= 1, the model fits on one rank.
inline topology::Layout random_layout(const spec::ModelSpec& model, int max_ranks, std::mt19937_64& rng,
                                      int64_t global_batch = 0) {
  PENT_CHECK_GE(max_ranks, 1);
  PENT_CHECK(spec::check_layout(model, {}, global_batch).ok(), "the model does not fit on one rank");
  const auto divisor_of = [&](int n) {
    std::vector<int> divisors;
    for (int d = 1; d <= n; ++d) {
      if (n % d == 0) divisors.push_back(d);
    }
    return divisors[draw_below(static_cast<int>(divisors.size()), rng)];
  };
  while (true) {
    topology::Layout l;
    // Each axis in turn takes a part of the ranks that are left; the turns are drawn, so that none is the small one.
    std::array<int*, 4> axes = {&l.tp, &l.cp, &l.dp, &l.pp};
    for (size_t i = 0; i < axes.size(); ++i) {
      std::swap(axes[i], axes[i + draw_below(static_cast<int>(axes.size() - i), rng)]);
    }
    int left = max_ranks;
    for (int* axis : axes) {
      *axis = 1 + draw_below(std::min(left, 8), rng);
      left /= *axis;
    }
    const int plane = l.tp * l.cp * l.dp;
    if (model.has_experts()) {
      l.ep = divisor_of(plane);
      l.etp = divisor_of(plane / l.ep);
    }
    l.edp = plane / (l.ep * l.etp);
    l.sp = l.tp > 1 && (model.has_experts() || draw_below(2, rng) == 1);
    if (l.pp <= model.num_layers && draw_below(2, rng) == 1) l.split = random_split(model.num_layers, l.pp, rng);
    if (spec::check_layout(model, l, global_batch).ok()) return l;
  }
}

}  // namespace penteract::testing
