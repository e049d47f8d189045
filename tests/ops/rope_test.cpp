#include "penteract/ops/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/reference.h"
#include "penteract/precision/precision.h"

namespace penteract::ops {
namespace {

using namespace test;

std::vector<double> plain_frequencies(int64_t dim, double theta) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < dim / 2; ++i)
    frequencies.push_back(std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dim)));
  return frequencies;
}

class RopeTest : public ::testing::TestWithParam<at::ScalarType> {};

// Each pair (i, i + d/2) as a complex number times exp(i·angle).
TEST_P(RopeTest, TurnsPairsByTheirAngle) {
  const auto dtype = GetParam();
  const std::vector<int64_t> positions = {0, 1, 40000, 7};
  const int64_t dim = 20, half = 10;
  const auto x = normal({4, 2, 3, dim}, "x", dtype);
  const auto tables = make_rope_tables(positions, plain_frequencies(dim, 1e4), precision::accumulate_dtype(dtype));
  const auto y = rope(x, tables);
  const auto xd = x.to(at::kDouble), yd = y.to(at::kDouble);
  for (int64_t t = 0; t < 4; ++t) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(positions[static_cast<size_t>(t)]) * std::pow(1e4, -2.0 * i / dim);
      const auto a = xd.select(0, t).select(2, i), b = xd.select(0, t).select(2, i + half);
      const auto first = a * std::cos(angle) - b * std::sin(angle), second = b * std::cos(angle) + a * std::sin(angle);
      const double unit = unit_of(dtype) * 1.01, table = 4 * accumulate_unit_of(dtype);
      const auto error = (a.abs() + b.abs()) * table;
      EXPECT_LE(filled(yd.select(0, t).select(2, i), first, first.abs() * unit + error), 1) << t << ' ' << i;
      EXPECT_LE(filled(yd.select(0, t).select(2, i + half), second, second.abs() * unit + error), 1) << t << ' ' << i;
    }
  }
}

TEST_P(RopeTest, InverseIsTheGradient) {
  const auto dtype = GetParam();
  const auto tables = make_rope_tables({3, 900, 11}, plain_frequencies(32, 1e6), precision::accumulate_dtype(dtype));
  const auto x = normal({3, 1, 2, 32}, "x", dtype), dy = normal({3, 1, 2, 32}, "dy", dtype);
  EXPECT_LE(relative_error(rope(rope(x, tables), tables, true), x), 8 * unit_of(dtype));
  // <dy, R x> = <Rᵀ dy, x>
  const double forward = (dy * rope(x, tables)).to(at::kDouble).sum().item<double>();
  const double backward = (rope(dy, tables, true) * x).to(at::kDouble).sum().item<double>();
  EXPECT_NEAR(forward, backward, 4 * unit_of(dtype) * (dy * x).to(at::kDouble).abs().sum().item<double>() * 2);
}

INSTANTIATE_TEST_SUITE_P(Types, RopeTest, ::testing::Values(at::kDouble, at::kFloat, at::kBFloat16));

TEST(Rope, ReadsSlicesOfAFusedProjection) {
  const auto fused = normal({5, 2, 96}, "qkv", at::kBFloat16);
  const auto q = fused.narrow(2, 32, 64).view({5, 2, 4, 16});
  const auto tables = make_rope_tables({0, 1, 2, 3, 4}, plain_frequencies(16, 1e4), at::kFloat);
  EXPECT_TRUE(same_bits(rope(q, tables), rope(q.contiguous(), tables)));
}

}  // namespace
}  // namespace penteract::ops
