#include "penteract/ops/swiglu.h"

#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include "ops/reference.h"

namespace penteract::ops {
namespace {

using namespace test;

class SwigluTest : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(SwigluTest, AgreesWithAutogradOfTheReference) {
  const auto dtype = GetParam();
  for (const int64_t width : {1, 8, 512, 77}) {
    // Scaled by 6, so that gates reach where sigmoid is 0 or 1 to within rounding.
    const auto x = normal({9, 2 * width}, "x").mul(6).to(dtype), dy = normal({9, width}, "dy", dtype);
    const auto xd = leaf(x);
    const auto gate = xd.narrow(1, 0, width);
    const auto yd = gate * gate.sigmoid() * xd.narrow(1, width, width);
    const auto expected = grads_of(yd, {xd}, dy)[0];
    // One rounding of the result; a few ulp of exp and the products, in the accumulate dtype. The gradient's sum
    // 1 + g·(1 - sigmoid) loses relative accuracy near its zero, never more than its terms' rounding.
    const double unit = unit_of(dtype) * 1.01, inner = 12 * accumulate_unit_of(dtype);
    EXPECT_LE(filled(swiglu(x), yd, yd.abs() * (unit + inner)), 1) << width;
    const auto dx = swiglu_backward(dy, x);
    const auto up = x.narrow(1, width, width).to(at::kDouble), g = gate.detach();
    const auto terms =
        at::cat({(dy * up).to(at::kDouble).abs() * (g.abs() + 1) * g.sigmoid() * 4, yd.detach().abs()}, 1);
    EXPECT_LE(filled(dx, expected, expected.abs() * (unit + inner) + terms * inner), 1) << width;
    if (dtype == at::kDouble) {
      EXPECT_LE(relative_error(dx, expected), kDoubleBound);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SwigluTest, ::testing::Values(at::kDouble, at::kFloat, at::kBFloat16));

TEST(Swiglu, LargeGatesStayFinite) {
  const auto x = at::zeros({1, 4}, at::TensorOptions().dtype(at::kFloat));
  x.select(1, 0).fill_(-200), x.select(1, 1).fill_(200), x.narrow(1, 2, 2).fill_(1);
  const auto y = swiglu(x), dx = swiglu_backward(y.new_ones({1, 2}), x);
  EXPECT_EQ(y.select(1, 0).item<float>(), 0);
  EXPECT_EQ(y.select(1, 1).item<float>(), 200);
  EXPECT_EQ(dx.select(1, 0).item<float>(), 0);
  EXPECT_EQ(dx.select(1, 1).item<float>(), 1);
}

}  // namespace
}  // namespace penteract::ops
