// The GPU computes what the CPU computes: loss, every gradient, the global norm, losses and weights of some steps, on one
// rank, on rank threads that share a device, and on one rank a device over NCCL. One device or two: the layouts follow.
#include <gtest/gtest.h>

#include <cmath>

#include "parity/layout_run.h"
#include "parity/small_models.h"
#include "penteract/cuda/open.h"
#include "penteract/topology/layout.h"

namespace penteract::parity {
namespace {

struct Case {
  const char* layout;
  bool experts = true;
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.layout << (c.experts ? "" : " dense"); }

std::vector<Case> cases() {
  if (cuda::num_devices() >= 2)
    return {{"tp=2"}, {"pp=2"}, {"cp=2"}, {"dp=2"}, {"dp=2,ep=2"}, {"tp=2,etp=2"}, {"tp=2,sp=off", false}};
  return {{"tp=1"},
          {"tp=2"},
          {"tp=4"},
          {"pp=2"},
          {"pp=3,split=2|1|1"},
          {"cp=2"},
          {"cp=4"},
          {"dp=2"},
          {"dp=2,ep=2"},
          {"tp=2,etp=2"},
          {"dp=4,ep=2,etp=2"},
          {"tp=2,pp=2,cp=2,dp=2,ep=4"},
          {"tp=2,pp=2,cp=2,dp=2,ep=2,etp=2"},
          {"tp=2,sp=off", false},
          {"tp=2,dp=2,pp=2", false},
          {"tp=1", false}};
}

spec::RunSpec run_of(const Case& c, spec::Recipe precision) {
  spec::RunSpec run = c.experts ? small_moe() : small_dense();
  run.precision = precision;
  run.router.z_coef = c.experts ? 0.01 : 0;
  run.layout = or_throw(topology::complete_layout(or_throw(topology::parse_layout(c.layout)), 0));
  return run;
}

std::shared_ptr<comm::DeviceBackend> devices(const spec::RunSpec& run) {
  return or_throw(cuda::open_devices(run.layout.num_ranks()));
}

class CudaParity : public testing::TestWithParam<Case> {};

// fp32 on the CPU, the same layout. Both accumulate in fp32 in another order.
TEST_P(CudaParity, Fp32EqualsTheCpu) {
  const auto run = run_of(GetParam(), spec::Recipe::fp32);
  constexpr int64_t kSteps = 3;
  const LayoutRun cpu = run_layout(run, {.steps = kSteps});
  const LayoutRun gpu = run_layout(run, {.steps = kSteps, .replay = &cpu.routes, .device = devices(run)});
  ASSERT_EQ(gpu.losses.size(), cpu.losses.size());
  EXPECT_NEAR(gpu.losses[0], cpu.losses[0], 1e-5 * cpu.losses[0]);
  EXPECT_NEAR(gpu.aux_losses[0], cpu.aux_losses[0], 1e-5);
  EXPECT_NEAR(gpu.norms[0], cpu.norms[0], 1e-5 * cpu.norms[0]);
  double worst = 0;
  for (const auto& [name, grad] : cpu.grads) {
    const double error = relative_error(gpu.grads.at(name), grad, 1e-6 * cpu.norms[0]);
    EXPECT_LT(error, 1e-4) << name;
    worst = std::max(worst, error);
  }
  fmt::print("{}: loss {:.1e}, worst gradient {:.1e}\n", GetParam().layout, std::abs(gpu.losses[0] / cpu.losses[0] - 1),
             worst);
  EXPECT_EQ(gpu.eval_tokens, cpu.eval_tokens);
}

// bf16 with the routes of fp32: each gradient within twice the error of one CPU rank in bf16, plus 2^-8; the error over
// some draws together, as in parity/bf16_ranks_test.cpp.
TEST_P(CudaParity, Bf16StaysWithinTheBoundOfTheCpu) {
  constexpr uint64_t kDraws = 8;
  struct Squares {
    double cpu = 0, gpu = 0, size = 0;
  };
  std::map<std::string, Squares> squares;
  const auto square = [](const at::Tensor& t) { return std::pow(at::norm(t).item<double>(), 2); };
  for (uint64_t draw = 1; draw <= kDraws; ++draw) {
    const auto drawn = [draw](const Case& c, spec::Recipe precision) {
      spec::RunSpec run = run_of(c, precision);
      run.seed = draw;
      return run;
    };
    const Case one{"tp=1", GetParam().experts};
    const LayoutRun reference = run_layout(drawn(one, spec::Recipe::fp32), {.steps = 1});
    const LayoutRun cpu = run_layout(drawn(one, spec::Recipe::bf16), {.steps = 1, .replay = &reference.routes});
    const auto run = drawn(GetParam(), spec::Recipe::bf16);
    const LayoutRun gpu = run_layout(run, {.steps = 1, .replay = &reference.routes, .device = devices(run)});
    for (const auto& [name, grad] : reference.grads) {
      squares[name].cpu += square(cpu.grads.at(name) - grad);
      squares[name].gpu += square(gpu.grads.at(name) - grad);
      squares[name].size += square(grad);
    }
  }
  double worst = 0;
  for (const auto& [name, s] : squares) {
    const double error = std::sqrt(s.gpu / s.size), bound = 2 * std::sqrt(s.cpu / s.size) + 0x1p-8;
    EXPECT_LT(error, bound) << name;
    worst = std::max(worst, error / bound);
  }
  fmt::print("{}: bf16, worst gradient {:.2f} of its bound\n", GetParam().layout, worst);
}

// Initial weights are the CPU's bit for bit, and a run repeats itself bit for bit.
TEST_P(CudaParity, StartsFromTheSameBitsAndRepeatsItself) {
  const auto run = run_of(GetParam(), spec::Recipe::bf16);
  const LayoutRun cpu = run_layout(run, {.steps = 0});
  const LayoutRun gpu = run_layout(run, {.steps = 0, .device = devices(run)});
  for (const auto& [name, weight] : cpu.weights) EXPECT_TRUE(gpu.weights.at(name).equal(weight)) << name;
  const LayoutRun first = run_layout(run, {.steps = 3, .device = devices(run)});
  const LayoutRun again = run_layout(run, {.steps = 3, .device = devices(run)});
  EXPECT_EQ(first.losses, again.losses);
  EXPECT_EQ(first.norms, again.norms);
  for (const auto& [name, weight] : first.weights) EXPECT_TRUE(again.weights.at(name).equal(weight)) << name;
}

INSTANTIATE_TEST_SUITE_P(Layouts, CudaParity, testing::ValuesIn(cases()));

}  // namespace
}  // namespace penteract::parity
