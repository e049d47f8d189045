// What must hold for every model and every layout that it can take, on models and layouts drawn at random.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "penteract/spec/param_table.h"
#include "penteract/topology/sequence.h"
#include "support/random_layout.h"
#include "support/test_seed.h"

namespace penteract::spec {
namespace {

using testing::draw_below;
using topology::Axis;
using topology::AxisSet;
using topology::Coord;
using topology::Grid;
using topology::Layout;
using topology::RankGrid;
using topology::Slice;

constexpr int kNumDraws = 60;
constexpr int kMaxRanks = 24;

int draw_between(int first, int last, std::mt19937_64& rng) { return first + draw_below(last - first + 1, rng); }

int draw_of(std::initializer_list<int> values, std::mt19937_64& rng) {
  return values.begin()[draw_below(static_cast<int>(values.size()), rng)];
}

// Small sizes that divide by little, so that a wrong offset cannot hide.
ModelSpec random_model(std::mt19937_64& rng) {
  ModelSpec m;
  m.num_layers = draw_between(1, 6, rng);
  m.hidden_size = draw_between(1, 7, rng);
  m.num_heads = draw_of({2, 3, 4, 6, 8, 12}, rng);
  do m.num_kv_heads = draw_between(1, static_cast<int>(m.num_heads), rng);
  while (m.num_heads % m.num_kv_heads != 0);
  m.head_dim = draw_of({2, 4, 6}, rng);
  m.vocab_size = draw_between(11, 29, rng);
  m.intermediate_size = draw_of({4, 6, 8, 12, 24}, rng);
  m.moe_layers.assign(m.num_layers, false);
  if (draw_below(3, rng) > 0) {
    m.num_experts = draw_of({2, 3, 4, 6, 8, 12}, rng);
    m.num_experts_per_tok = 1;
    m.moe_intermediate_size = draw_of({2, 3, 4, 6, 12}, rng);
    for (int i = 0; i < m.num_layers; ++i) m.moe_layers[i] = draw_below(3, rng) > 0;
  }
  m.qk_norm = draw_below(2, rng) == 1;
  m.tie_embeddings = draw_below(2, rng) == 1;
  return m;
}

// Calls check(model, layout, rng) for kNumDraws draws; a failure in it shows the seed, the draw and both.
template <class Check>
void for_random_layouts(Check&& check) {
  const uint64_t seed = testing::test_seed();
  for (int draw = 0; draw < kNumDraws; ++draw) {
    std::mt19937_64 rng(seed + draw);
    const ModelSpec m = random_model(rng);
    const Layout layout = testing::random_layout(m, kMaxRanks, rng);
    SCOPED_TRACE(fmt::format(
        "PENT_TEST_SEED={} repeats this (draw {} of seed {}): {}; {} layers, hidden {}, {} heads over {} of {}, "
        "vocabulary {}, MLP {}, {} experts of {}, tied {}",
        seed + draw, draw, seed, topology::to_string(layout), m.num_layers, m.hidden_size, m.num_heads, m.num_kv_heads,
        m.head_dim, m.vocab_size, m.intermediate_size, m.num_experts, m.moe_intermediate_size, m.tie_embeddings));
    check(m, layout, rng);
    if (::testing::Test::HasFailure()) return;  // one counterexample is enough
  }
}

// Calls check(param, ranks) with the ranks that hold each parameter, ascending.
template <class Check>
void for_each_param(const ModelSpec& m, const RankGrid& grid, const std::vector<int>& stages, Check&& check) {
  for (const Param& p : param_table(m)) {
    SCOPED_TRACE(p.name);
    std::vector<int> ranks;
    for (int r = 0; r < grid.num_ranks(); ++r) {
      if (holds(p, grid.layout(), stages, grid.coord(r).pp)) ranks.push_back(r);
    }
    check(p, ranks);
  }
}

// How often each element of a tensor of this shape lies in one of the slices, at the least and at the most.
std::pair<int, int> times_covered(const std::vector<int64_t>& shape, const std::vector<Slice>& slices) {
  const Slice whole = Slice::whole(shape);
  std::vector<int> times(whole.num_elements(), 0);
  for (const Slice& s : slices) {
    topology::for_each_run(whole, s, s, [&](int64_t first, int64_t, int64_t count) {
      for (int64_t i = first; i < first + count; ++i) ++times.at(i);
    });
  }
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  return {*least, *most};
}

using Once = std::pair<int, int>;

TEST(LayoutProperties, RandomLayoutsReachEveryAxisAndReadBack) {
  std::map<std::string, int> seen;
  for_random_layouts([&](const ModelSpec& m, const Layout& l, std::mt19937_64&) {
    EXPECT_TRUE(check_layout(m, l).ok());
    EXPECT_LE(l.num_ranks(), kMaxRanks);
    EXPECT_EQ(l.tp * l.cp * l.dp, l.etp * l.ep * l.edp);
    EXPECT_EQ(or_throw(topology::complete_layout(or_throw(topology::parse_layout(topology::to_string(l))), 0)), l);
    for (int a = 0; a < topology::kNumAxes; ++a) {
      const Axis axis = static_cast<Axis>(a);
      seen[std::string(topology::axis_name(axis))] += l.size(axis) > 1;
    }
    seen["tp without sp"] += l.tp > 1 && !l.sp;
    seen["more tp than key heads"] += l.tp > m.num_kv_heads;
    seen["split"] += !l.split.empty();
    seen["tied over stages"] += m.tie_embeddings && l.pp > 1;
    seen["four axes"] += (l.tp > 1) + (l.cp > 1) + (l.dp > 1) + (l.pp > 1) >= 3 && l.ep > 1;
  });
  for (const auto& [what, times] : seen) EXPECT_GT(times, 0) << "no draw has " << what;
}

TEST(LayoutProperties, BothRankGridsAreBijectionsAndAgreeOnPp) {
  for_random_layouts([](const ModelSpec&, const Layout& l, std::mt19937_64&) {
    const RankGrid grid(l);
    std::set<std::tuple<int, int, int, int>> dense, expert;
    for (int r = 0; r < grid.num_ranks(); ++r) {
      const Coord c = grid.coord(r);
      for (int a = 0; a < topology::kNumAxes; ++a) {
        const Axis axis = static_cast<Axis>(a);
        EXPECT_TRUE(c.at(axis) >= 0 && c.at(axis) < l.size(axis)) << topology::axis_name(axis) << " of rank " << r;
      }
      dense.emplace(c.tp, c.cp, c.dp, c.pp);
      expert.emplace(c.etp, c.ep, c.edp, c.pp);
      EXPECT_EQ(r, c.tp + l.tp * (c.cp + l.cp * (c.dp + l.dp * c.pp)));
      EXPECT_EQ(r, c.etp + l.etp * (c.ep + l.ep * (c.edp + l.edp * c.pp)));
      EXPECT_EQ(grid.group(r, Grid::dense, {Axis::pp}), grid.group(r, Grid::expert, {Axis::pp}));
      EXPECT_EQ(grid.group(r, Grid::dense, {Axis::tp, Axis::cp, Axis::dp}),
                grid.group(r, Grid::expert, {Axis::etp, Axis::ep, Axis::edp}));
    }
    EXPECT_EQ(static_cast<int>(dense.size()), l.num_ranks());
    EXPECT_EQ(static_cast<int>(expert.size()), l.num_ranks());
  });
}

// A group of any set of axes holds exactly the ranks that agree on all others, the same list on each member.
TEST(LayoutProperties, GroupsAreTheRanksThatAgreeOnTheOtherAxes) {
  const std::map<Grid, std::vector<Axis>> grids = {{Grid::dense, {Axis::tp, Axis::cp, Axis::dp, Axis::pp}},
                                                   {Grid::expert, {Axis::etp, Axis::ep, Axis::edp, Axis::pp}}};
  for_random_layouts([&](const ModelSpec&, const Layout& l, std::mt19937_64& rng) {
    const RankGrid ranks(l);
    for (const auto& [grid, axes] : grids) {
      // One, two or three axes.
      const auto any = [&, &axes = axes] { return axes[draw_below(4, rng)]; };
      const AxisSet set = {any(), any(), any()};
      for (int r = 0; r < ranks.num_ranks(); ++r) {
        std::vector<int> expected;
        for (int other = 0; other < ranks.num_ranks(); ++other) {
          const bool same = std::all_of(axes.begin(), axes.end(), [&](Axis a) {
            return set.has(a) || ranks.coord(r).at(a) == ranks.coord(other).at(a);
          });
          if (same) expected.push_back(other);
        }
        EXPECT_EQ(ranks.group(r, grid, set), expected) << "rank " << r;
      }
    }
  });
}

// One rank of each replica group: its slices tile the global tensor. Who is a replica is said here by coordinates, not
// by holders().
TEST(LayoutProperties, SlicesTileEachParameterOverTheRanksThatAreNoReplicas) {
  for_random_layouts([](const ModelSpec& m, const Layout& l, std::mt19937_64&) {
    const RankGrid grid(l);
    for_each_param(m, grid, or_throw(stage_of_layers(l, m.num_layers)),
                   [&](const Param& p, const std::vector<int>& on) {
                     std::vector<Slice> slices;
                     const int pp = grid.coord(on.at(0)).pp;
                     for (int r : on) {
                       const Coord c = grid.coord(r);
                       // Tied embeddings stand on two stages; key heads on tp / heads neighbours.
                       bool first = c.pp == pp;
                       if (p.grid == Grid::expert) {
                         first = first && c.edp == 0;
                       } else {
                         first = first && c.cp == 0 && c.dp == 0;
                         if (p.cut == Cut::none) first = first && c.tp == 0;
                         if (p.cut == Cut::kv_heads && l.tp > m.num_kv_heads)
                           first = first && c.tp % (l.tp / m.num_kv_heads) == 0;
                       }
                       if (first) slices.push_back(local_slice(p, l, c));
                     }
                     EXPECT_EQ(times_covered(p.shape, slices), Once(1, 1));
                   });
  });
}

TEST(LayoutProperties, HoldersPartitionTheRanksAndOneContributesForEachReplica) {
  for_random_layouts([](const ModelSpec& m, const Layout& l, std::mt19937_64&) {
    const RankGrid grid(l);
    const auto stages = or_throw(stage_of_layers(l, m.num_layers));
    for_each_param(m, grid, stages, [&](const Param& p, const std::vector<int>& on) {
      std::vector<int> covered;
      std::vector<Slice> slices;
      for (int r : on) {
        const std::vector<int> replicas = holders(p, grid, stages, r);
        EXPECT_TRUE(std::is_sorted(replicas.begin(), replicas.end()));
        EXPECT_TRUE(std::binary_search(replicas.begin(), replicas.end(), r)) << "rank " << r;
        if (replicas.at(0) != r) {
          EXPECT_EQ(replicas, holders(p, grid, stages, replicas[0])) << "rank " << r;
          continue;
        }
        covered.insert(covered.end(), replicas.begin(), replicas.end());
        slices.push_back(local_slice(p, l, grid.coord(r)));
        // Every token's share is added once: of the ranks that saw it (tp), all or exactly one.
        std::map<std::tuple<int, int, int>, std::pair<int, int>> contributors;  // (cp, dp, pp) -> (all, of them count)
        for (int replica : replicas) {
          const Coord c = grid.coord(replica);
          EXPECT_EQ(local_slice(p, l, c), slices.back());
          auto& [all, counted] = contributors[{c.cp, c.dp, c.pp}];
          ++all;
          counted += contributes(p, l, c);
        }
        for (const auto& [tokens, count] : contributors) {
          const bool own_tokens = p.share == Share::partial || l.sp;
          EXPECT_EQ(count.second, own_tokens ? count.first : 1) << "replicas of rank " << r;
        }
      }
      std::sort(covered.begin(), covered.end());
      EXPECT_EQ(covered, on);
      EXPECT_EQ(times_covered(p.shape, slices), Once(1, 1));
    });
  });
}

// What a rank stores of one block works together: its query heads find their key head, rows of one matrix meet the
// columns of the next.
TEST(LayoutProperties, SlicesOfOneBlockFitTogether) {
  for_random_layouts([](const ModelSpec& m, const Layout& l, std::mt19937_64&) {
    const RankGrid grid(l);
    const int64_t heads_per_key = m.num_heads / m.num_kv_heads;
    for (int r = 0; r < grid.num_ranks(); ++r) {
      std::map<std::string, Slice> slices;
      for (const Param& p : param_table(m)) slices[p.name] = local_slice(p, l, grid.coord(r));
      const auto range = [&](const std::string& name, int dim) {
        const Slice& s = slices.at(name);
        return topology::Range{s.offset[dim], s.size[dim]};
      };
      for (int layer = 0; layer < m.num_layers; ++layer) {
        const std::string prefix = fmt::format("model.layers.{}.", layer), attn = prefix + "self_attn.",
                          mlp = prefix + (m.moe_layers[layer] ? "mlp.experts." : "mlp.");
        const auto q = range(attn + "q_proj.weight", 0), k = range(attn + "k_proj.weight", 0);
        for (int64_t head = q.first / m.head_dim; head < (q.first + q.count) / m.head_dim; ++head) {
          const int64_t key_first = head / heads_per_key * m.head_dim;
          EXPECT_TRUE(k.first <= key_first && key_first + m.head_dim <= k.first + k.count)
              << "rank " << r << " has query head " << head << " without its key head";
        }
        EXPECT_EQ(range(attn + "v_proj.weight", 0), k);
        EXPECT_EQ(range(attn + "o_proj.weight", 1), q);
        const int rows = m.moe_layers[layer] ? 1 : 0;
        EXPECT_EQ(range(mlp + "up_proj.weight", rows), range(mlp + "gate_proj.weight", rows));
        EXPECT_EQ(range(mlp + "down_proj.weight", rows + 1), range(mlp + "gate_proj.weight", rows));
        if (!m.moe_layers[layer]) continue;
        EXPECT_EQ(range(mlp + "up_proj.weight", 0), range(mlp + "gate_proj.weight", 0));
        EXPECT_EQ(range(mlp + "down_proj.weight", 0), range(mlp + "gate_proj.weight", 0));
      }
    }
  });
}

// The optimizer's shards: consecutive flat ranges of a slice, cut anywhere.
TEST(LayoutProperties, FlatRangesCutAnywhereTileASlice) {
  for_random_layouts([](const ModelSpec& m, const Layout& l, std::mt19937_64& rng) {
    const auto table = param_table(m);
    for (int i = 0; i < 5; ++i) {
      const Param& p = table[draw_below(static_cast<int>(table.size()), rng)];
      const auto shape = local_slice(p, l, RankGrid(l).coord(draw_below(l.num_ranks(), rng))).size;
      const auto size = static_cast<int>(Slice::whole(shape).num_elements());
      std::vector<Slice> slices;
      int64_t flat = 0;
      while (flat < size) {
        const int64_t count = draw_between(0, static_cast<int>(size - flat), rng);
        const auto pieces = topology::slices_of_flat_range(shape, {flat, count});
        EXPECT_LE(pieces.size(), 2 * shape.size() - 1);
        for (const Slice& piece : pieces) {
          EXPECT_EQ(topology::flat_offset(Slice::whole(shape), piece), flat) << p.name;
          flat += piece.num_elements();
        }
        slices.insert(slices.end(), pieces.begin(), pieces.end());
      }
      EXPECT_EQ(flat, size);
      EXPECT_EQ(times_covered(shape, slices), Once(1, 1)) << p.name;
    }
  });
}

TEST(LayoutProperties, PositionsCoverThePaddedSequenceOnce) {
  for_random_layouts([](const ModelSpec&, const Layout& l, std::mt19937_64& rng) {
    const int64_t length = draw_between(1, 70, rng);
    const int64_t padded = topology::padded_length(l, length);
    EXPECT_GE(padded, length);
    std::vector<int64_t> seen;
    std::set<size_t> sizes;
    for (int cp = 0; cp < l.cp; ++cp) {
      for (int tp = 0; tp < l.tp; ++tp) {
        const auto part = topology::local_positions(l, cp, tp, padded);
        sizes.insert(part.size());
        if (tp == 0 || l.sp) seen.insert(seen.end(), part.begin(), part.end());
      }
    }
    EXPECT_EQ(sizes.size(), 1u) << "ranks hold unequal numbers of positions of " << padded;
    std::sort(seen.begin(), seen.end());
    std::vector<int64_t> all(padded);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(seen, all);
  });
}

// Also for layouts that the model cannot take, since that is when they are asked for.
TEST(LayoutProperties, NearestLayoutsAreLegalOfAsManyRanksAndDistinct) {
  for_random_layouts([](const ModelSpec& m, const Layout& legal, std::mt19937_64& rng) {
    Layout wanted = legal;
    wanted.split.clear();
    wanted.tp = draw_between(1, 8, rng), wanted.dp = draw_between(1, 3, rng), wanted.cp = 1;
    wanted.ep = wanted.etp = 1, wanted.edp = wanted.tp * wanted.dp;
    wanted.sp = wanted.tp > 1 && draw_below(2, rng) == 1;
    const int64_t global_batch = draw_between(0, 12, rng);
    const auto near = nearest_layouts(m, wanted, global_batch, 5);
    EXPECT_LE(near.size(), 5u);
    for (size_t i = 0; i < near.size(); ++i) {
      EXPECT_TRUE(check_layout(m, near[i], global_batch).ok()) << topology::to_string(near[i]);
      EXPECT_EQ(near[i].num_ranks(), wanted.num_ranks()) << topology::to_string(near[i]);
      EXPECT_EQ(near[i].tp * near[i].cp * near[i].dp, near[i].etp * near[i].ep * near[i].edp);
      EXPECT_EQ(std::count(near.begin(), near.end(), near[i]), 1) << topology::to_string(near[i]);
    }
    if (check_layout(m, wanted, global_batch).ok()) {
      EXPECT_FALSE(near.empty());
      if (!near.empty()) {
        EXPECT_EQ(near[0], wanted) << "a legal layout is the nearest to itself";
      }
    }
  });
}

}  // namespace
}  // namespace penteract::spec
