#include "penteract/ops/rms_norm.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <array>

#include "ops/reference.h"

namespace penteract::ops {
namespace {

using namespace test;

at::Tensor reference(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return x * (x.pow(2).mean(-1, true) + eps).rsqrt() * weight;
}

class RmsNormTest : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(RmsNormTest, AgreesWithAutogradOfTheReference) {
  const auto dtype = GetParam();
  for (const auto& [rows, heads, width] : std::vector<std::array<int64_t, 3>>{{5, 1, 256}, {130, 3, 37}, {1, 2, 4}}) {
    const auto x = normal({rows, heads, width}, "x", dtype), weight = normal({width}, "w", dtype);
    const auto dy = normal({rows, heads, width}, "dy", dtype);
    const auto xd = leaf(x), wd = leaf(weight);
    const auto yd = reference(xd, wd, 1e-6);
    const auto expected = grads_of(yd, {xd, wd}, dy);
    const auto [y, rstd] = rms_norm(x, weight, 1e-6);
    const auto [dx, dweight] = rms_norm_backward(dy, x, weight, rstd);
    EXPECT_EQ(rstd.numel(), rows * heads);
    // Two roundings to the dtype (normed, times weight), one in the gradients; accumulation is far below in bf16.
    const double unit = unit_of(dtype), sum = static_cast<double>(width) * accumulate_unit_of(dtype);
    EXPECT_LE(filled(y, yd, yd.abs() * (2.02 * unit + 2 * sum)), 1);
    EXPECT_LE(relative_error(dx, expected[0]), dtype == at::kDouble ? kDoubleBound : 1.01 * unit + 4 * sum);
    // Each term dy·h carries the rounding of h; terms add up to at most their sum of magnitudes.
    const auto magnitude = (dy.to(at::kDouble) * yd.detach() / wd.detach()).abs().sum_to_size({width});
    const double rows_sum = static_cast<double>(rows * heads + 4) * accumulate_unit_of(dtype);
    EXPECT_LE(filled(dweight, expected[1], magnitude * (1.01 * unit + 2 * sum + rows_sum)), 1);
    if (dtype == at::kDouble) {
      EXPECT_LE(relative_error(dweight, expected[1]), kDoubleBound);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RmsNormTest, ::testing::Values(at::kDouble, at::kFloat, at::kBFloat16));

TEST(RmsNorm, WeightGradientDoesNotDependOnThreads) {
  const auto x = normal({300, 64}, "x", at::kFloat), w = normal({64}, "w", at::kFloat);
  const auto rstd = rms_norm(x, w, 1e-6).rstd;
  at::set_num_threads(2);
  const auto two = rms_norm_backward(x, x, w, rstd);
  at::set_num_threads(1);
  const auto one = rms_norm_backward(x, x, w, rstd);
  EXPECT_TRUE(same_bits(one.dweight, two.dweight));
  EXPECT_TRUE(same_bits(one.dx, two.dx));
}

TEST(RmsNorm, RoundsBeforeTheWeightLikeHuggingFace) {
  const auto x = normal({50, 96}, "x", at::kBFloat16), w = normal({96}, "w", at::kBFloat16);
  const auto wide = x.to(at::kFloat);
  const auto normed = (wide * (wide.pow(2).mean(-1, true) + 1e-6).rsqrt()).to(at::kBFloat16);
  const auto mismatch = (rms_norm(x, w, 1e-6).y != normed * w).sum().item<int64_t>();
  EXPECT_LE(mismatch, 4);  // a last bit of rstd may move a few roundings of 4,800
}

}  // namespace
}  // namespace penteract::ops
