#include "penteract/spec/param_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "parity/small_models.h"
#include "penteract/spec/flops.h"
#include "penteract/spec/legality.h"

namespace penteract::spec {
namespace {

topology::RankGrid grid_of(const std::string& text) {
  return topology::RankGrid(or_throw(topology::complete_layout(or_throw(topology::parse_layout(text)), 0)));
}

ModelSpec qwen3_30b() {
  ModelSpec m;
  m.num_layers = 48, m.hidden_size = 2048, m.num_heads = 32, m.num_kv_heads = 4, m.head_dim = 128,
  m.vocab_size = 151936;
  m.num_experts = 128, m.num_experts_per_tok = 8, m.moe_intermediate_size = 768, m.qk_norm = true;
  m.moe_layers.assign(48, true);
  return m;
}

// Published sizes of Qwen3-30B-A3B: 30,532,122,624 parameters, a layer of 623,120,640.
TEST(ParamTable, CountsOfQwen3Moe) {
  int64_t total = 0, layer = 0;
  std::set<std::string> names;
  for (const auto& p : param_table(qwen3_30b())) {
    total += p.num_elements();
    if (p.layer == 7) layer += p.num_elements();
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_EQ(p.decay, p.shape.size() > 1) << p.name;
  }
  EXPECT_EQ(total, 30532122624);
  EXPECT_EQ(layer, 623120640);
  // Activated with the head, without the input embedding: 3,041,867,776; attention at length 1 adds 2·heads·dim·layers.
  EXPECT_EQ(forward_flops_per_token(qwen3_30b(), 1), 2.0 * 3041867776 + 2.0 * 32 * 128 * 48);
}

// The union of all ranks' slices covers every parameter, replicas are the holders, and nothing else overlaps.
TEST(ParamTable, SlicesCoverEachParameterAndHoldersAreItsReplicas) {
  for (const char* layout :
       {"tp=2,pp=2,cp=2,dp=2,ep=4", "tp=4,pp=2,cp=2,ep=2,etp=2", "dp=4,ep=2,etp=2", "pp=3,split=2|1|1", "tp=4"}) {
    const auto grid = grid_of(layout);
    for (bool tied : {false, true}) {
      ModelSpec m = parity::small_moe().model;
      m.tie_embeddings = tied;
      const auto stages = or_throw(stage_of_layers(grid.layout(), m.num_layers));
      for (const auto& p : param_table(m)) {
        std::vector<int> times(p.num_elements(), 0);
        std::map<int, std::vector<int>> by_leader;
        for (int r = 0; r < grid.num_ranks(); ++r) {
          if (!holds(p, grid.layout(), stages, grid.coord(r).pp)) continue;
          const auto replicas = holders(p, grid, stages, r);
          EXPECT_TRUE(std::find(replicas.begin(), replicas.end(), r) != replicas.end());
          by_leader[replicas[0]] = replicas;
          if (replicas[0] != r) {
            EXPECT_EQ(replicas, by_leader[replicas[0]]);
            continue;
          }
          const auto slice = local_slice(p, grid.layout(), grid.coord(r));
          const auto whole = topology::Slice::whole(p.shape);
          topology::for_each_run(whole, slice, slice, [&](int64_t first, int64_t, int64_t count) {
            for (int64_t i = first; i < first + count; ++i) ++times[i];
          });
        }
        EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](int t) { return t == 1; })) << layout << " " << p.name;
      }
    }
  }
}

TEST(ParamTable, ReductionClasses) {
  const auto grid = grid_of("tp=2,pp=2,cp=2,dp=2,ep=4");
  const ModelSpec m = parity::small_moe().model;
  const auto stages = or_throw(stage_of_layers(grid.layout(), m.num_layers));
  std::map<std::string, std::vector<int>> of;
  for (const auto& p : param_table(m)) {
    if (holds(p, grid.layout(), stages, 0)) of[p.name] = holders(p, grid, stages, 0);
  }
  using V = std::vector<int>;
  EXPECT_EQ(of["model.layers.0.self_attn.q_proj.weight"], (V{0, 2, 4, 6}));             // dp·cp
  EXPECT_EQ(of["model.layers.0.input_layernorm.weight"], (V{0, 1, 2, 3, 4, 5, 6, 7}));  // tp·dp·cp
  EXPECT_EQ(of["model.layers.0.mlp.gate.weight"], (V{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(of["model.layers.0.mlp.experts.up_proj.weight"], (V{0, 4}));  // edp
  // More tp ranks than key heads: neighbours share one head.
  const auto wide = grid_of("tp=4");
  for (const auto& p : param_table(m)) {
    if (p.name == "model.layers.0.self_attn.k_proj.weight") {
      EXPECT_EQ(holders(p, wide, std::vector<int>(4, 0), 0), (V{0, 1}));
      EXPECT_EQ(holders(p, wide, std::vector<int>(4, 0), 3), (V{2, 3}));
    }
  }
  // Tied embeddings are held by the first and the last stage.
  ModelSpec tied = m;
  tied.tie_embeddings = true;
  EXPECT_EQ(holders(param_table(tied)[0], grid, stages, 0), (V{0, 2, 4, 6, 8, 10, 12, 14}));
}

TEST(ParamTable, WithoutSequenceParallelismOneTpRankCounts) {
  const auto grid = grid_of("tp=2,sp=off");
  const ModelSpec m = parity::small_dense().model;
  for (const auto& p : param_table(m)) {
    const bool replicated_input = p.shape.size() == 1 && p.name.find("self_attn") == std::string::npos;
    EXPECT_TRUE(contributes(p, grid.layout(), grid.coord(0))) << p.name;
    EXPECT_EQ(contributes(p, grid.layout(), grid.coord(1)), !replicated_input) << p.name;
  }
}

TEST(CheckLayout, IllegalOnesNameTheNumbersAndTheNearestThatWork) {
  const ModelSpec m = parity::small_moe().model;
  struct Bad {
    const char* layout;
    const char* what;
  };
  for (const Bad& bad : {Bad{"tp=3", "num_attention_heads = 4"}, Bad{"dp=5,ep=5", "num_experts = 8"},
                         Bad{"dp=5,etp=5", "moe_intermediate_size = 12"}, Bad{"pp=2,split=1|2", "adds up to 3"},
                         Bad{"tp=2,sp=off", "sequence parallelism"}, Bad{"pp=2,vpp=2", "vpp = 2"},
                         Bad{"pp=2,schedule=zb", "schedule"}}) {
    const auto layout = or_throw(topology::complete_layout(or_throw(topology::parse_layout(bad.layout)), 0));
    const Status status = check_layout(m, layout, 0);
    ASSERT_FALSE(status.ok()) << bad.layout;
    EXPECT_EQ(exit_code(status.error().code), ExitCode::layout);
    EXPECT_NE(status.error().what.find(bad.what), std::string::npos) << status.error().message();
    EXPECT_FALSE(status.error().remedy.empty());
  }
  const auto near =
      nearest_layouts(m, or_throw(topology::complete_layout(or_throw(topology::parse_layout("tp=8,dp=2")), 0)), 4, 3);
  ASSERT_EQ(near.size(), 3u);
  for (const auto& l : near) EXPECT_TRUE(check_layout(m, l, 4).ok());
  EXPECT_EQ(near[0].tp, 4);
  // Key heads: divide by tp or divide it.
  ModelSpec odd = parity::small_dense().model;
  odd.num_heads = 6, odd.num_kv_heads = 2;
  EXPECT_FALSE(
      check_layout(odd, or_throw(topology::complete_layout(or_throw(topology::parse_layout("tp=3")), 3))).ok());
}

}  // namespace
}  // namespace penteract::spec
