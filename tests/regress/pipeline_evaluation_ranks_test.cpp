// Forward-only runs of two and more stages lost the received activation before the last stage had used it.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "penteract/base/check.h"
#include "penteract/parallel/pipeline.h"
#include "support/run_ranks.h"

namespace penteract::parallel {
namespace {

TEST(PipelineEvaluationRanks, TheLastStageSeesWhatTheFirstSent) {
  for (int pp : {2, 3}) {
    testing::run_ranks(pp, [&](comm::RankContext& context) {
      const auto lists = or_throw(schedule::make_schedule("forward_only", pp, 1, 4));
      PipelineOptions options;
      options.activation_shape = {2};
      options.training = false;
      std::vector<float> seen;
      run_pipeline(
          lists[context.rank], context.world,
          [&](int micro_batch, const at::Tensor& input) {
            if (context.rank == 0) return at::full({2}, static_cast<float>(micro_batch));
            PENT_CHECK(input.defined());
            if (context.rank == pp - 1) seen.push_back(input[1].item<float>());
            return input + 10;
          },
          options);
      if (context.rank == pp - 1) {
        EXPECT_EQ(seen,
                  (std::vector<float>{10.f * (pp - 2), 10.f * (pp - 2) + 1, 10.f * (pp - 2) + 2, 10.f * (pp - 2) + 3}));
      }
    });
  }
}

}  // namespace
}  // namespace penteract::parallel
