#include "support/run_ranks.h"

#include <gtest/gtest.h>

namespace penteract::testing {

comm::WorldOptions test_world_options() {
  comm::WorldOptions options;
  options.deadline = std::chrono::seconds(20);
  options.check_buffers = true;
  return options;
}

void run_ranks(int num_ranks, const std::function<void(comm::RankContext&)>& fn) {
  run_ranks(num_ranks, test_world_options(), fn);
}

void run_ranks(int num_ranks, comm::WorldOptions options, const std::function<void(comm::RankContext&)>& fn) {
  Status status = comm::run_rank_threads(num_ranks, std::move(options), [&](comm::RankContext& context) {
    fn(context);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.error().message();
}

}  // namespace penteract::testing
