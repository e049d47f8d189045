// bf16, one step. With the routes of the fp32 run replayed, each parameter's gradient is about as near to fp32's as that
// of one rank; without replay close choices of experts differ, and the bound holds for the whole gradient.
//
// The error of a gradient is ‖g − g32‖ / ‖g32‖ over some draws of weights and tokens together. In one draw of a model this
// small a single rounding in the forward pass moves every gradient, and a single other expert much more, so that the
// ratio of two errors is mostly chance.
#include <cmath>

#include "parity/matrix.h"

namespace penteract::parity {
namespace {

constexpr uint64_t kReplayedDraws = 8, kOwnDraws = 32;

struct Error {
  double square = 0, size_square = 0;
  void add(const at::Tensor& grad, const at::Tensor& exact) {
    square += std::pow(at::norm(grad - exact).item<double>(), 2);
    size_square += std::pow(at::norm(exact).item<double>(), 2);
  }
  double value() const { return size_square == 0 ? std::sqrt(square) : std::sqrt(square / size_square); }
};
using Errors = std::map<std::string, Error>;  // by parameter; "" is the whole gradient

// fp32 on one rank with the seed `draw`, computed once a process.
const LayoutRun& fp32(const Case& c, uint64_t draw) {
  static std::map<std::tuple<Model, int64_t, uint64_t>, LayoutRun> all;
  const auto [it, fresh] = all.try_emplace({c.model, c.global_batch, draw});
  if (fresh) {
    const Case one{"tp=1", c.model, c.global_batch};
    it->second = run_layout(with_precision(run_of(one), spec::Recipe::fp32, draw), {.steps = 1});
  }
  return it->second;
}

Errors errors_of(const Case& c, bool replayed) {
  Errors errors;
  for (uint64_t draw = 1; draw <= (replayed ? kReplayedDraws : kOwnDraws); ++draw) {
    const LayoutRun& exact = fp32(c, draw);
    const LayoutRun run = run_layout(with_precision(run_of(c), spec::Recipe::bf16, draw),
                                     {.steps = 1, .replay = replayed ? &exact.routes : nullptr});
    for (const auto& [name, grad] : exact.grads) errors[replayed ? name : ""].add(run.grads.at(name), grad);
  }
  return errors;
}

// Those of one rank, computed once a process.
const Errors& one_rank(const Case& c, bool replayed) {
  static std::map<std::tuple<Model, int64_t, bool>, Errors> all;
  const auto [it, fresh] = all.try_emplace({c.model, c.global_batch, replayed});
  if (fresh) it->second = errors_of({"tp=1", c.model, c.global_batch}, replayed);
  return it->second;
}

class Bf16ParityRanks : public testing::TestWithParam<Case> {
 protected:
  static void TearDownTestSuite() { tally_.print("bf16"); }
  void compare(bool replayed) {
    const Errors& one = one_rank(GetParam(), replayed);
    for (const auto& [name, error] : errors_of(GetParam(), replayed)) {
      tally_.check(replayed ? "gradient" : "whole gradient, own routes", error.value(),
                   2 * one.at(name).value() + 0x1p-8, testing::PrintToString(GetParam()) + ", " + name);
    }
  }
  static inline Tally tally_;
};
class Bf16OwnRoutesRanks : public Bf16ParityRanks {};

TEST_P(Bf16ParityRanks, EachGradientIsAsExactAsOnOneRank) { compare(true); }
TEST_P(Bf16OwnRoutesRanks, TheWholeGradientIsAsExactAsOnOneRank) { compare(false); }

// Many draws each: every third case with experts.
std::vector<Case> some_with_experts() {
  std::vector<Case> cases;
  for (size_t i = 0; i < matrix().size(); i += 3) {
    if (run_of(matrix()[i]).model.has_experts()) cases.push_back(matrix()[i]);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Matrix, Bf16ParityRanks, testing::ValuesIn(matrix()));
INSTANTIATE_TEST_SUITE_P(Matrix, Bf16OwnRoutesRanks, testing::ValuesIn(some_with_experts()));

}  // namespace
}  // namespace penteract::parity
