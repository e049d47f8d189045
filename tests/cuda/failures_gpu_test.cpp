// What goes wrong on one rank of a device ends the run as on the CPU, and the accounts agree with the allocator.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>

#include "parity/layout_run.h"
#include "parity/small_models.h"
#include "penteract/comm/world.h"
#include "penteract/cuda/open.h"
#include "penteract/topology/layout.h"

namespace penteract::comm {
namespace {

int num_ranks() { return cuda::num_devices() >= 2 ? 2 : 4; }

WorldOptions options() {
  WorldOptions options;
  options.deadline = std::chrono::seconds(30);
  options.device = or_throw(cuda::open_devices(num_ranks()));
  return options;
}

// The others wait in a collective, also with device work in flight; all end within seconds and the cause is the first.
TEST(CudaFailures, AnExceptionOnOneRankEndsTheOthers) {
  const auto start = std::chrono::steady_clock::now();
  const Status status = run_rank_threads(num_ranks(), options(), [](RankContext& c) -> Status {
    at::Tensor t = at::ones({100'000}, at::TensorOptions().dtype(at::kFloat).device(c.device));
    c.world.all_reduce_sum(t);
    if (c.rank == 1) return Error{ErrorCode::checkpoint_damaged, "made to fail", "", ""};
    if (c.rank == 0) c.world.send(t, 1, 3);
    c.world.all_reduce_sum(t);
    return {};
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::checkpoint_damaged) << status.error().message();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(CudaFailures, OutOfMemoryOnOneRankIsNamed) {
  const Status status = run_rank_threads(num_ranks(), options(), [](RankContext& c) -> Status {
    at::Tensor t = at::ones({1000}, at::TensorOptions().dtype(at::kFloat).device(c.device));
    if (c.rank == 1) at::empty({int64_t{1} << 42}, t.options());
    c.world.all_reduce_sum(t);
    return {};
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::out_of_memory) << status.error().message();
  EXPECT_NE(status.error().message().find("rank 1"), std::string::npos) << status.error().message();
}

TEST(CudaFailures, ANaNSkipsTheStepOnEveryRank) {
  spec::RunSpec run = parity::small_moe();
  run.precision = spec::Recipe::bf16;
  run.layout = or_throw(topology::complete_layout(
      or_throw(topology::parse_layout(num_ranks() == 4 ? "tp=2,pp=2,ep=2" : "dp=2,ep=2")), 0));
  const Status status = run_rank_threads(num_ranks(), options(), [&](RankContext& c) -> Status {
    model::Engine engine(c, run, parallel::Holding::training);
    engine.init_weights();
    const auto rows = parity::random_rows(run, 1);
    EXPECT_FALSE(engine.train_step(rows, 1e-3, 1).nonfinite);
    if (c.rank == num_ranks() - 1)
      engine.store().buffers().front().weight[0].fill_(std::numeric_limits<double>::quiet_NaN());
    std::vector<at::Tensor> before;
    for (const auto& b : engine.store().buffers()) before.push_back(b.master.clone());
    EXPECT_TRUE(engine.train_step(rows, 1e-3, 2).nonfinite) << c.rank;
    for (size_t i = 0; i < before.size(); ++i)
      EXPECT_TRUE(before[i].equal(engine.store().buffers()[i].master)) << c.rank << " " << i;
    return {};
  });
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
}

// On one rank the account's peak is the allocator's within 2 %; of several ranks that share a device each holds its own.
TEST(CudaMemory, AccountsAgreeWithTheAllocator) {
  spec::RunSpec run = parity::small_moe();
  run.precision = spec::Recipe::bf16;
  run.model.hidden_size = 256, run.model.head_dim = 64, run.model.vocab_size = 20'001;
  WorldOptions world = options();
  world.device = or_throw(cuda::open_devices(1));
  run.layout = {};
  c10::cuda::CUDACachingAllocator::emptyCache();
  const Status status = run_rank_threads(1, world, [&](RankContext& c) -> Status {
    const auto stats_at = [] { return c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes.at(0); };
    const auto base = static_cast<double>(stats_at().current);
    c10::cuda::CUDACachingAllocator::resetPeakStats(0);
    {
      model::Engine engine(c, run, parallel::Holding::training);
      engine.init_weights();
      for (int step = 1; step <= 2; ++step) engine.train_step(parity::random_rows(run, step), 1e-3, step);
      const double current = static_cast<double>(stats_at().current) - base;
      EXPECT_NEAR(static_cast<double>(c.memory.current_bytes()), current, 0.02 * current);
      EXPECT_GT(c.memory.current_bytes(MemoryKind::weights), 0u);
      EXPECT_GT(c.memory.current_bytes(MemoryKind::optimizer), 0u);
    }
    const double peak = static_cast<double>(stats_at().peak) - base;
    fmt::print("peak: account {} bytes, allocator {} bytes\n", c.memory.peak_bytes(), static_cast<int64_t>(peak));
    EXPECT_NEAR(static_cast<double>(c.memory.peak_bytes()), peak, 0.02 * peak);
    return {};
  });
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());

  const Status shared = run_rank_threads(num_ranks(), options(), [&](RankContext& c) -> Status {
    const uint64_t before = c.memory.current_bytes();
    const at::Tensor t = at::ones({(c.rank + 1) * 1'000'000}, at::TensorOptions().dtype(at::kFloat).device(c.device));
    const double expected = 4e6 * (c.rank + 1);
    EXPECT_NEAR(static_cast<double>(c.memory.current_bytes() - before), expected, 0.02 * expected) << c.rank;
    return {};
  });
  EXPECT_TRUE(shared.ok()) << (shared.ok() ? "" : shared.error().message());
}

}  // namespace
}  // namespace penteract::comm
