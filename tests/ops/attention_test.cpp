#include "penteract/ops/attention.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "ops/reference.h"

namespace penteract::ops {
namespace {

using namespace test;

struct Inputs {
  at::Tensor q, k, v, dout;
};

Inputs inputs(int64_t queries, int64_t keys, int64_t batch, int64_t heads, int64_t kv_heads, int64_t dim, int64_t v_dim,
              at::ScalarType dtype) {
  return {normal({queries, batch, heads, dim}, "q", dtype), normal({keys, batch, kv_heads, dim}, "k", dtype),
          normal({keys, batch, kv_heads, v_dim}, "v", dtype), normal({queries, batch, heads, v_dim}, "dout", dtype)};
}

// Which key each query sees, from the list of blocks.
at::Tensor mask_of(const std::vector<AttentionBlock>& blocks, int64_t queries, int64_t keys) {
  auto mask = at::zeros({queries, keys}, at::TensorOptions().dtype(at::kBool));
  for (const auto& b : blocks) {
    for (int64_t i = 0; i < b.query_count; ++i) {
      const int64_t seen = b.causal ? i + 1 : b.key_count;
      mask.select(0, b.query_first + i).narrow(0, b.key_first, seen).fill_(true);
    }
  }
  return mask;
}

// Softmax over the seen keys, heads repeated, in double. Fully masked rows give zero.
at::Tensor reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                     double scale, at::Tensor* lse) {
  const int64_t repeat = q.size(2) / k.size(2);
  const auto qs = q.permute({1, 2, 0, 3}), ks = k.permute({1, 2, 0, 3}).repeat_interleave(repeat, 1);
  const auto vs = v.permute({1, 2, 0, 3}).repeat_interleave(repeat, 1);
  const auto scores = qs.matmul(ks.transpose(2, 3)) * scale;
  const auto hidden = mask.logical_not();
  const auto exps = scores.exp().masked_fill(hidden, 0.0);
  const auto sum = exps.sum(-1, true);
  *lse = sum.detach().log().squeeze(-1);
  return (exps / sum.masked_fill(sum == 0, 1.0)).matmul(vs).permute({2, 0, 1, 3});
}

struct Layout {
  const char* name;
  int64_t queries, keys;
  std::vector<AttentionBlock> blocks;
};

const std::vector<Layout> kLayouts = {
    {"causal", 12, 12, {{0, 12, 0, 12, true}}},
    {"zigzag rank 1 of 2", 8, 16, {{0, 4, 4, 4, true}, {0, 4, 0, 4, false}, {4, 4, 8, 4, true}, {4, 4, 0, 8, false}}},
    {"three key blocks", 6, 20, {{0, 6, 14, 6, true}, {0, 6, 0, 3, false}, {0, 6, 3, 8, false}}},
    {"documents, one query range empty", 14, 14, {{0, 5, 0, 5, true}, {5, 0, 5, 0, true}, {5, 6, 5, 6, true}}},
    {"no block", 3, 4, {}},
};

class AttentionTest : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(AttentionTest, BlocksAgreeWithAutogradOfTheWhole) {
  const auto dtype = GetParam();
  for (const auto& layout : kLayouts) {
    for (const auto& [batch, heads, kv_heads, dim, v_dim] :
         std::vector<std::array<int64_t, 5>>{{1, 4, 1, 32, 32}, {2, 4, 2, 16, 16}, {2, 3, 3, 24, 16}}) {
      const auto in = inputs(layout.queries, layout.keys, batch, heads, kv_heads, dim, v_dim, dtype);
      const double scale = 1 / std::sqrt(static_cast<double>(dim));
      const auto q = leaf(in.q), k = leaf(in.k), v = leaf(in.v);
      at::Tensor lse_expected;
      const auto mask = mask_of(layout.blocks, layout.queries, layout.keys);
      const auto expected = reference(q, k, v, mask, scale, &lse_expected);
      const auto grads = grads_of(expected, {q, k, v}, in.dout);
      const auto [out, lse] = attention(in.q, in.k, in.v, layout.blocks, scale);
      const auto got = attention_backward(in.dout, in.q, in.k, in.v, out, lse, layout.blocks, scale);
      // float: some tens of roundings of terms of the size of the largest. bfloat16: out is rounded (delta = dout·out
      // then carries dim of these roundings, random in sign) and each gradient once.
      const double bound = dtype == at::kDouble ? kDoubleBound : dtype == at::kFloat ? 64 * kFloatUnit : 2 * kBf16Unit;
      EXPECT_TRUE(out.is_contiguous());
      EXPECT_LE(relative_error(out, expected), bound) << layout.name << heads;
      EXPECT_LE(relative_error(got.dq, grads[0]), bound) << layout.name << heads;
      EXPECT_LE(relative_error(got.dk, grads[1]), bound) << layout.name << heads;
      EXPECT_LE(relative_error(got.dv, grads[2]), bound) << layout.name << heads;
      EXPECT_TRUE(got.dk.is_contiguous() && got.dk.scalar_type() == dtype);
      EXPECT_TRUE(lse.to(at::kDouble).allclose(lse_expected, 1e-5, dtype == at::kDouble ? 1e-12 : 1e-5)) << layout.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AttentionTest, ::testing::Values(at::kDouble, at::kFloat, at::kBFloat16));

TEST(Attention, GivesEqualBitsAgainAndOnTwoThreads) {
  const auto in = inputs(64, 64, 2, 4, 2, 32, 32, at::kBFloat16);
  const std::vector<AttentionBlock> blocks = {{0, 32, 0, 32, true}, {32, 32, 32, 32, true}, {32, 32, 0, 32, false}};
  const auto run = [&](int threads) {
    at::set_num_threads(threads);
    const auto [out, lse] = attention(in.q, in.k, in.v, blocks, 0.2);
    const auto grads = attention_backward(in.dout, in.q, in.k, in.v, out, lse, blocks, 0.2);
    at::set_num_threads(1);
    return std::vector<at::Tensor>{out, lse, grads.dq, grads.dk, grads.dv};
  };
  const auto two = run(2);
  for (int again = 0; again < 3; ++again) {
    const auto next = run(2);
    for (size_t i = 0; i < two.size(); ++i) EXPECT_TRUE(same_bits(two[i], next[i])) << i;
  }
  const auto one = run(1);
  for (size_t i = 0; i < two.size(); ++i) EXPECT_LE(relative_error(one[i], two[i]), 2 * kBf16Unit) << i;
}

TEST(Attention, ReadsSlicesOfAFusedProjection) {
  const auto fused = normal({6, 1, 64}, "qkv", at::kFloat);
  const auto q = fused.narrow(2, 0, 32).view({6, 1, 4, 8}), k = fused.narrow(2, 32, 16).view({6, 1, 2, 8});
  const auto v = fused.narrow(2, 48, 16).view({6, 1, 2, 8});
  const std::vector<AttentionBlock> blocks = {{0, 6, 0, 6, true}};
  EXPECT_TRUE(same_bits(attention(q, k, v, blocks, 0.3).out,
                        attention(q.contiguous(), k.contiguous(), v.contiguous(), blocks, 0.3).out));
}

TEST(Attention, RefusesBlocksOutsideOrAcross) {
  const auto in = inputs(8, 8, 1, 1, 1, 8, 8, at::kFloat);
  const auto run = [&](std::vector<AttentionBlock> blocks) { attention(in.q, in.k, in.v, blocks, 1); };
  EXPECT_THROW(run({{0, 9, 0, 8, false}}), CheckFailure);
  EXPECT_THROW(run({{0, 8, 1, 8, false}}), CheckFailure);
  EXPECT_THROW(run({{0, 4, 0, 8, true}}), CheckFailure);
  EXPECT_THROW(run({{0, 5, 0, 5, true}, {4, 4, 0, 8, false}}), CheckFailure);
}

}  // namespace
}  // namespace penteract::ops
