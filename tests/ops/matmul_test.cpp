#include "penteract/ops/matmul.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "ops/reference.h"
#include "penteract/ops/grouped_matmul.h"
#include "penteract/precision/precision.h"

namespace penteract::ops {
namespace {

using namespace test;

struct Case {
  int64_t m, n, k;
};
// Few and many rows, sizes that vectors, tiles and chunks do not divide, several chunks of weights.
const std::vector<Case> kCases = {{1, 5, 3},    {2, 7, 8},    {3, 9, 33},    {4, 130, 40},  {7, 6, 17},
                                  {16, 33, 70}, {17, 20, 31}, {23, 70, 129}, {40, 600, 256}};

// Error of a product of depth k rounded once: one rounding of the result, k roundings of the sum (Higham, 3.1).
at::Tensor product_bound(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype, int64_t depth) {
  const auto expected = a.mm(b).abs(), magnitude = a.abs().mm(b.abs());
  return expected * (unit_of(dtype) * 1.01) + magnitude * (static_cast<double>(depth + 2) * accumulate_unit_of(dtype));
}

class MatmulTest : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(MatmulTest, ProductsAgreeWithDouble) {
  const auto dtype = GetParam();
  for (const auto& [m, n, k] : kCases) {
    const auto x = normal({m, k}, "x", dtype), w = normal({n, k}, "w", dtype), dy = normal({m, n}, "dy", dtype);
    const auto xd = x.to(at::kDouble), wd = w.to(at::kDouble), dyd = dy.to(at::kDouble);
    const auto y = matmul_nt(x, w), dx = matmul_nn(dy, w);
    EXPECT_EQ(y.scalar_type(), dtype);
    EXPECT_LE(filled(y, xd.mm(wd.t()), product_bound(xd, wd.t(), dtype, k)), 1) << m << ' ' << n << ' ' << k;
    EXPECT_LE(filled(dx, dyd.mm(wd), product_bound(dyd, wd, dtype, n)), 1) << m << ' ' << n << ' ' << k;

    const auto before = normal({n, k}, "grad", precision::accumulate_dtype(dtype));
    const auto grad = before.clone();
    wgrad_accumulate(dy, x, grad);
    const auto sum = before.to(at::kDouble) + dyd.t().mm(xd);
    const auto bound = product_bound(dyd.t(), xd, precision::accumulate_dtype(dtype), m + 1) +
                       (sum.abs() + before.abs()) * (2 * accumulate_unit_of(dtype));
    EXPECT_LE(filled(grad, sum, bound), 1) << m << ' ' << n << ' ' << k;
  }
}

TEST_P(MatmulTest, GroupsEqualTheirOwnProducts) {
  const auto dtype = GetParam();
  const std::vector<int64_t> counts = {0, 3, 16, 1, 0, 21, 4};
  const int64_t groups = 7, n = 34, k = 40, rows = 45;
  const auto x = normal({rows, k}, "x", dtype), dy = normal({rows, n}, "dy", dtype);
  const auto w = normal({groups, n, k}, "w", dtype);
  const auto y = grouped_matmul_nt(x, w, counts), dx = grouped_matmul_nn(dy, w, counts);
  const auto before = normal({groups, n, k}, "grad", precision::accumulate_dtype(dtype));
  const auto grad = before.clone();
  grouped_wgrad_accumulate(dy, x, counts, grad);
  int64_t row = 0;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t count = counts[static_cast<size_t>(g)];
    const auto xg = x.narrow(0, row, count), dyg = dy.narrow(0, row, count), wg = w.select(0, g);
    EXPECT_TRUE(same_bits(y.narrow(0, row, count), matmul_nt(xg, wg))) << g;
    EXPECT_TRUE(same_bits(dx.narrow(0, row, count), matmul_nn(dyg, wg))) << g;
    const auto own = before.select(0, g).clone();
    wgrad_accumulate(dyg, xg, own);
    EXPECT_TRUE(same_bits(grad.select(0, g), own)) << g;
    row += count;
  }
}

TEST_P(MatmulTest, EmptyOperands) {
  const auto dtype = GetParam();
  const auto x = normal({0, 4}, "x", dtype), w = normal({3, 4}, "w", dtype), dy = normal({0, 3}, "dy", dtype);
  EXPECT_EQ(matmul_nt(x, w).sizes(), at::IntArrayRef({0, 3}));
  EXPECT_EQ(matmul_nn(dy, w).sizes(), at::IntArrayRef({0, 4}));
  const auto grad = normal({3, 4}, "grad", precision::accumulate_dtype(dtype)), before = grad.clone();
  wgrad_accumulate(dy, x, grad);
  EXPECT_TRUE(same_bits(grad, before));
  EXPECT_EQ(grouped_matmul_nt(x, w.unsqueeze(0), {0}).size(0), 0);
}

TEST_P(MatmulTest, FewRowsGiveEqualBitsForAnyNumberOfThreads) {
  const auto dtype = GetParam();
  const std::vector<int64_t> counts = {5, 0, 8, 2};
  const auto x = normal({15, 300}, "x", dtype), dy = normal({15, 290}, "dy", dtype);
  const auto w = normal({4, 290, 300}, "w", dtype);
  const auto run = [&](int threads) {
    at::set_num_threads(threads);
    auto grad = at::zeros({4, 290, 300}, w.options().dtype(precision::accumulate_dtype(dtype)));
    grouped_wgrad_accumulate(dy, x, counts, grad);
    return std::vector<at::Tensor>{grouped_matmul_nt(x, w, counts), grouped_matmul_nn(dy, w, counts), grad};
  };
  const auto one = run(1), two = run(2);
  at::set_num_threads(1);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same_bits(one[i], two[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(Types, MatmulTest, ::testing::Values(at::kDouble, at::kFloat, at::kBFloat16));

TEST(GroupedMatmul, RefusesCountsThatDoNotAddUp) {
  const auto x = normal({4, 2}, "x"), w = normal({2, 3, 2}, "w");
  EXPECT_THROW(grouped_matmul_nt(x, w, {1, 2}), CheckFailure);
  EXPECT_THROW(grouped_matmul_nt(x, w, {5, -1}), CheckFailure);
  EXPECT_THROW(grouped_matmul_nt(x, w, {4}), CheckFailure);
}

}  // namespace
}  // namespace penteract::ops
