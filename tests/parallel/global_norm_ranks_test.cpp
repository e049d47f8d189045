// The global norm and whether it is finite are one decision of all ranks (userlog E1).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "parity/small_models.h"
#include "penteract/comm/world.h"
#include "penteract/parallel/optimizer.h"
#include "penteract/topology/layout.h"

namespace penteract::parallel {
namespace {

// Gradients of 2 everywhere, and on one rank's own part one element that is `bad`.
void check(double bad, bool finite) {
  spec::RunSpec run = parity::small_dense();
  run.layout = or_throw(topology::complete_layout(or_throw(topology::parse_layout("tp=2,pp=2")), 0));
  const topology::RankGrid grid(run.layout);
  const Status status = comm::run_rank_threads(4, {}, [&](comm::RankContext& context) -> Status {
    ParamStore store(context, run.model, grid, precision::make_precision(run.precision), {},
                     Holding::weights_and_grads);
    store.zero_grads();
    for (auto& buffer : store.buffers()) {
      for (const auto& piece : store.owned_pieces(buffer))
        buffer.grad_shard().narrow(0, piece.shard_first, piece.count).fill_(2.0);
    }
    if (context.rank == 2) store.buffers().front().grad_shard()[0].fill_(bad);
    const GradNorm norm = global_grad_norm(store, context.world);
    EXPECT_EQ(norm.finite, finite) << "rank " << context.rank;
    const double expected = std::sqrt(4.0 * static_cast<double>(store.num_parameters() - 1) + bad * bad);
    if (finite) {
      EXPECT_NEAR(norm.norm, expected, 1e-12 * expected) << "rank " << context.rank;
    }
    return {};
  });
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
}

TEST(GlobalNormRanks, ANaNOnOneRankIsSeenByAll) {
  check(std::numeric_limits<double>::quiet_NaN(), false);
  check(-std::numeric_limits<double>::infinity(), false);
}

TEST(GlobalNormRanks, EachElementCountsOnce) { check(5.0, true); }

}  // namespace
}  // namespace penteract::parallel
