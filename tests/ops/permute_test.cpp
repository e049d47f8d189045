#include "penteract/ops/permute.h"

#include <gtest/gtest.h>

#include "ops/reference.h"
#include "penteract/precision/precision.h"

namespace penteract::ops {
namespace {

using namespace test;

at::Tensor ids(const std::vector<int64_t>& values) {
  auto out = at::empty({static_cast<int64_t>(values.size())}, at::TensorOptions().dtype(at::kLong));
  for (size_t i = 0; i < values.size(); ++i) out.data_ptr<int64_t>()[i] = values[i];
  return out;
}

class PermuteTest : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(PermuteTest, GatherAndScatterAdd) {
  const auto dtype = GetParam();
  const auto x = normal({5, 19}, "x", dtype);
  const auto index = ids({4, 0, 4, 2, 4, 0});
  EXPECT_TRUE(same_bits(gather_rows(x, index), x.index_select(0, index)));
  const auto y = normal({6, 19}, "y", dtype);
  const auto zeros = at::zeros({5, 19}, at::TensorOptions().dtype(at::kDouble));
  const auto expected = zeros.index_add(0, index, y.to(at::kDouble));
  const auto magnitude = zeros.index_add(0, index, y.to(at::kDouble).abs());
  const auto got = scatter_add_rows(y, index, 5);
  EXPECT_LE(
      filled(got, expected, expected.abs() * (1.01 * unit_of(dtype)) + magnitude * (3 * accumulate_unit_of(dtype))), 1);
  EXPECT_EQ(got.select(0, 1).abs().max().item<double>(), 0);
}

TEST_P(PermuteTest, CombineAgreesWithAutogradOfTheReference) {
  const auto dtype = GetParam();
  const int64_t tokens = 4, k = 2, width = 37;
  const auto accumulate = precision::accumulate_dtype(dtype);
  const auto y = normal({9, width}, "y", dtype), dout = normal({tokens, width}, "dout", dtype);
  const auto weights = normal({tokens, k}, "w", accumulate);
  const auto index = ids({3, 0, 8, 1, 2, -1, -1, -1});  // rows 4 to 7 are not named; token 3 has no row
  const auto yd = leaf(y), wd = leaf(weights);
  const auto present = (index >= 0).to(at::kDouble).unsqueeze(1);
  const auto rows = yd.index_select(0, index.clamp_min(0)) * present;
  const auto expected = (rows.view({tokens, k, width}) * wd.unsqueeze(2)).sum(1);
  const auto grads = grads_of(expected, {yd, wd}, dout);

  const double unit = 1.01 * unit_of(dtype), inner = accumulate_unit_of(dtype);
  const auto magnitude = (rows.view({tokens, k, width}) * wd.unsqueeze(2)).abs().sum(1);
  EXPECT_LE(filled(combine_rows(y, index, weights), expected, expected.abs() * unit + magnitude * (4 * inner)), 1);
  const auto [dy, dweights] = combine_rows_backward(dout, y, index, weights);
  EXPECT_LE(filled(dy, grads[0], grads[0].abs() * (unit + 2 * inner)), 1);
  EXPECT_LE(relative_error(dweights, grads[1]), 40 * inner);
  EXPECT_EQ(dweights.scalar_type(), accumulate);
  EXPECT_EQ(dy.narrow(0, 4, 4).abs().max().item<double>(), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, PermuteTest, ::testing::Values(at::kDouble, at::kFloat, at::kBFloat16));

TEST(Permute, RefusesIndicesOutside) {
  const auto x = normal({3, 2}, "x"), w = normal({1, 2}, "w");
  EXPECT_THROW(gather_rows(x, ids({0, 3})), CheckFailure);
  EXPECT_THROW(gather_rows(x, ids({-1})), CheckFailure);
  EXPECT_THROW(combine_rows(x, ids({0, -2}), w), CheckFailure);
  EXPECT_THROW(combine_rows_backward(normal({1, 2}, "d"), x, ids({1, 1}), w), CheckFailure);
}

}  // namespace
}  // namespace penteract::ops
