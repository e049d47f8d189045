#include "penteract/ops/cross_entropy.h"

#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/reference.h"
#include "penteract/precision/precision.h"

namespace penteract::ops {
namespace {

using namespace test;

class CrossEntropyTest : public ::testing::TestWithParam<at::ScalarType> {};

at::Tensor ids(const std::vector<int64_t>& values) {
  auto out = at::empty({static_cast<int64_t>(values.size())}, at::TensorOptions().dtype(at::kLong));
  for (size_t i = 0; i < values.size(); ++i) out.data_ptr<int64_t>()[i] = values[i];
  return out;
}

// Two uneven shards of a vocabulary that vectors and blocks do not divide, joined as the ranks would.
TEST_P(CrossEntropyTest, ShardsAgreeWithAutogradOfTheWhole) {
  const auto dtype = GetParam();
  const int64_t vocab = 2503, cut = 1101;
  const auto logits = normal({5, vocab}, "logits").mul(5).to(dtype);
  const auto targets = ids({0, 1100, 1101, -1, 2502});
  const auto dloss = normal({5}, "dloss", precision::accumulate_dtype(dtype));
  dloss.select(0, 3).fill_(0);

  const auto whole = leaf(logits);
  const auto picked = whole.gather(1, targets.clamp_min(0).unsqueeze(1)).squeeze(1);
  const auto losses = whole.logsumexp(1) - picked;
  const auto expected = grads_of(losses, {whole}, dloss)[0];

  auto left = logits.narrow(1, 0, cut).contiguous(), right = logits.narrow(1, cut, vocab - cut).contiguous();
  const auto max = row_max(left).maximum(row_max(right));
  EXPECT_TRUE(same_bits(max, std::get<0>(logits.to(max.scalar_type()).max(1))));
  const auto sum = row_sum_exp(left, max) + row_sum_exp(right, max);
  const auto lse = max + sum.log();
  const auto loss = lse - target_logits(left, targets, 0) - target_logits(right, targets, cut);
  // exp: 1 ulp and the rounding of its argument (up to 40), a sum of blocks of 64 a lane; log halves nothing.
  const double unit = accumulate_unit_of(dtype);
  const auto seen = losses.detach().index_select(0, ids({0, 1, 2, 4})), got = loss.index_select(0, ids({0, 1, 2, 4}));
  EXPECT_LE((got.to(at::kDouble) - seen).abs().max().item<double>(), 128 * unit);

  cross_entropy_backward_(left, lse, targets, 0, dloss);
  cross_entropy_backward_(right, lse, targets, cut, dloss);
  const auto grad = at::cat({left, right}, 1);
  const auto bound = expected.abs() * (1.01 * unit_of(dtype) + 128 * unit) + 1e-37;
  EXPECT_LE(filled(grad, expected,
                   bound + dloss.to(at::kDouble).abs().unsqueeze(1) * (128 * unit) * (whole.detach().softmax(1))),
            1);
  if (dtype == at::kDouble) {
    EXPECT_LE(relative_error(grad, expected), kDoubleBound);
  }
  EXPECT_EQ(grad.select(0, 3).abs().max().item<double>(), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, CrossEntropyTest, ::testing::Values(at::kDouble, at::kFloat, at::kBFloat16));

TEST(CrossEntropy, TargetsOutsideTheShardCountNothing) {
  const auto logits = normal({4, 10}, "logits", at::kFloat);
  const auto z = target_logits(logits, ids({9, 10, 19, 20}), 10);
  EXPECT_EQ(z.data_ptr<float>()[0], 0);
  EXPECT_EQ(z.data_ptr<float>()[1], logits.data_ptr<float>()[10]);
  EXPECT_EQ(z.data_ptr<float>()[2], logits.data_ptr<float>()[29]);
  EXPECT_EQ(z.data_ptr<float>()[3], 0);
}

TEST(CrossEntropy, InfinitiesAndNaN) {
  const float inf = std::numeric_limits<float>::infinity();
  auto logits = normal({3, 21}, "logits", at::kFloat);
  logits.select(0, 0).select(0, 5).fill_(-inf);
  logits.select(0, 1).select(0, 20).fill_(std::numeric_limits<float>::quiet_NaN());
  logits.select(0, 2).fill_(-inf);
  const auto max = row_max(logits);
  EXPECT_EQ(max.data_ptr<float>()[0], logits.select(0, 0).max().item<float>());
  EXPECT_TRUE(std::isnan(max.data_ptr<float>()[1]));
  EXPECT_EQ(max.data_ptr<float>()[2], -inf);
  const auto sum = row_sum_exp(logits, max);
  EXPECT_TRUE(std::isfinite(sum.data_ptr<float>()[0]));
  EXPECT_TRUE(std::isnan(sum.data_ptr<float>()[1]));
  EXPECT_EQ(row_max(at::empty({2, 0}, logits.options())).data_ptr<float>()[1], -inf);
}

}  // namespace
}  // namespace penteract::ops
