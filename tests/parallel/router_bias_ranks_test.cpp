// The router biases move against the load by one step of the rate, the same bits on every layout.
#include "penteract/parallel/router_bias.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "parity/small_models.h"
#include "penteract/comm/world.h"
#include "penteract/topology/layout.h"

namespace penteract::parallel {
namespace {

TEST(RouterBiasRanks, MovesAgainstTheLoad) {
  spec::RunSpec run = parity::small_moe();
  run.model.router_bias = true;
  const int64_t num_experts = run.model.num_experts;
  // Layer 0: one above, one at, one below the mean of 5; layer 1 is dense; layer 2: all equal; layer 3: one expert only.
  std::vector<int64_t> counts(run.model.num_layers * num_experts, 0);
  const int64_t first[] = {9, 5, 1, 5, 5, 6, 4, 5};
  std::copy(first, first + 8, counts.begin());
  std::fill_n(counts.begin() + 2 * num_experts, num_experts, 7);
  counts[3 * num_experts + 7] = 3;
  for (const char* layout : {"tp=1", "tp=2,pp=2,dp=2,ep=2"}) {
    run.layout = or_throw(topology::complete_layout(or_throw(topology::parse_layout(layout)), 0));
    const Status status = comm::run_rank_threads(run.layout.num_ranks(), {}, [&](comm::RankContext& context) -> Status {
      ParamStore store(context, run.model, topology::RankGrid(run.layout), precision::make_precision(run.precision), {},
                       Holding::training);
      store.init_weights(1);
      for (int i = 0; i < 2; ++i) update_router_biases(store, counts, 0.25);
      store.publish_weights();
      for (int layer : {0, 2, 3}) {
        const std::string name = "model.layers." + std::to_string(layer) + ".mlp.gate.e_score_correction_bias";
        if (store.stage_of_layer()[layer] != topology::RankGrid(run.layout).coord(context.rank).pp) continue;
        const at::Tensor bias = store.get(name)->weight;
        for (int64_t e = 0; e < num_experts; ++e) {
          const int64_t* n = counts.data() + layer * num_experts;
          double mean = 0;
          for (int64_t i = 0; i < num_experts; ++i) mean += static_cast<double>(n[i]) / 8;
          const double sign = n[e] < mean ? 1 : n[e] > mean ? -1 : 0;
          EXPECT_EQ(bias[e].item<double>(), 0.5 * sign) << layout << " " << name << " " << e;
        }
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
  }
}

}  // namespace
}  // namespace penteract::parallel
