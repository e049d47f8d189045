#include "penteract/ops/adamw.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/reference.h"

namespace penteract::ops {
namespace {

using namespace test;

struct State {
  at::Tensor master, exp_avg, exp_avg_sq;
};

State start(int64_t count, at::ScalarType dtype) {
  const auto options = at::TensorOptions().dtype(dtype);
  return {normal({count}, "master", dtype), at::zeros({count}, options), at::zeros({count}, options)};
}

// torch.optim.AdamW, single-tensor form.
void reference(State& s, const at::Tensor& grad, const AdamwStep& o) {
  const auto g = grad * o.grad_scale;
  s.master.mul_(1 - o.lr * o.weight_decay);
  s.exp_avg.lerp_(g, 1 - o.beta1);
  s.exp_avg_sq.mul_(o.beta2).addcmul_(g, g, 1 - o.beta2);
  const double bias1 = 1 - std::pow(o.beta1, static_cast<double>(o.step));
  const double bias2 = 1 - std::pow(o.beta2, static_cast<double>(o.step));
  const auto denominator = s.exp_avg_sq.sqrt().div_(std::sqrt(bias2)).add_(o.eps);
  s.master.addcdiv_(s.exp_avg, denominator, -o.lr / bias1);
}

class AdamwTest : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(AdamwTest, FollowsTorchOverSeveralSteps) {
  const auto dtype = GetParam();
  const int64_t count = 1003;
  auto ours = start(count, dtype), theirs = start(count, dtype);
  for (int64_t step = 1; step <= 5; ++step) {
    const auto grad = normal({count}, "grad" + std::to_string(step), dtype);
    const AdamwStep options{1e-2, 0.9, 0.95, 1e-8, 0.1, step, 0.7};
    adamw_step(ours.master, ours.exp_avg, ours.exp_avg_sq, grad, options);
    reference(theirs, grad, options);
  }
  // A handful of roundings a step; the sizes are 1 or below.
  const double bound = 32 * accumulate_unit_of(dtype);
  EXPECT_LE(relative_error(ours.master, theirs.master), bound);
  EXPECT_LE(relative_error(ours.exp_avg, theirs.exp_avg), bound);
  EXPECT_LE(relative_error(ours.exp_avg_sq, theirs.exp_avg_sq), bound);
}

TEST_P(AdamwTest, BitsDependNeitherOnCutsNorOnThreads) {
  const auto dtype = GetParam();
  const int64_t count = 200'003;
  const auto grad = normal({count}, "grad", dtype);
  const AdamwStep options{1e-2, 0.9, 0.95, 1e-8, 0.1, 3, 0.7};
  auto whole = start(count, dtype), cut = start(count, dtype);
  at::set_num_threads(2);
  adamw_step(whole.master, whole.exp_avg, whole.exp_avg_sq, grad, options);
  at::set_num_threads(1);
  int64_t first = 0;
  for (const int64_t length : {1, 7, 60'001, 139'994}) {
    const auto part = [&](const at::Tensor& t) { return t.narrow(0, first, length); };
    adamw_step(part(cut.master), part(cut.exp_avg), part(cut.exp_avg_sq), part(grad), options);
    first += length;
  }
  EXPECT_TRUE(same_bits(whole.master, cut.master));
  EXPECT_TRUE(same_bits(whole.exp_avg, cut.exp_avg));
  EXPECT_TRUE(same_bits(whole.exp_avg_sq, cut.exp_avg_sq));
}

TEST_P(AdamwTest, RoundToAgreesWithTorch) {
  const auto master = normal({1003}, "master", GetParam());
  for (const auto dtype : {at::kBFloat16, at::kFloat}) {
    auto out = at::empty({1003}, at::TensorOptions().dtype(dtype));
    round_to(master, out);
    EXPECT_TRUE(same_bits(out, master.to(dtype)));
  }
}

TEST_P(AdamwTest, SumOfSquares) {
  const auto dtype = GetParam();
  const auto x = normal({70'001}, "x", dtype);
  const auto expected = x.to(at::kDouble).pow(2).sum().item<double>();
  at::set_num_threads(2);
  const auto two = sum_of_squares(x);
  at::set_num_threads(1);
  const auto one = sum_of_squares(x);
  EXPECT_NEAR(one.sum, expected, expected * 1e-13);
  EXPECT_EQ(one.sum, two.sum);
  EXPECT_TRUE(one.finite);
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
    for (const int64_t place : {int64_t{0}, int64_t{16'390}, int64_t{70'000}}) {
      const auto y = x.clone();
      y.select(0, place).fill_(bad);
      EXPECT_FALSE(sum_of_squares(y).finite) << place;
    }
  }
  EXPECT_EQ(sum_of_squares(x.narrow(0, 0, 0)).sum, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, AdamwTest, ::testing::Values(at::kDouble, at::kFloat));

TEST(RoundTo, KeepsNaNAndInfinities) {
  const auto master = normal({9}, "master", at::kFloat);
  uint32_t bits[] = {0x7f800001, 0xffffffff, 0x7f800000, 0x7f7fffff, 0x3f808000, 0x3f818000, 0x00000001, 0x80000000};
  std::memcpy(master.data_ptr(), bits, sizeof bits);
  auto out = at::empty({9}, at::TensorOptions().dtype(at::kBFloat16));
  round_to(master, out);
  const auto* got = static_cast<const uint16_t*>(out.data_ptr());
  EXPECT_TRUE((got[0] & 0x7fff) > 0x7f80 && (got[1] & 0x7fff) > 0x7f80);
  EXPECT_EQ(got[2], 0x7f80);
  EXPECT_EQ(got[3], 0x7f80);  // beyond the largest bfloat16
  EXPECT_EQ(got[4], 0x3f80);  // halfway: to even
  EXPECT_EQ(got[5], 0x3f82);
  EXPECT_EQ(got[6], 0);
  EXPECT_EQ(got[7], 0x8000);
}

}  // namespace
}  // namespace penteract::ops
