#include "penteract/ops/attention.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "penteract/ops/aten/aten.h"
#include "penteract/ops/dispatch.h"
#include "penteract/precision/precision.h"

namespace penteract::ops {
namespace {

// [T, B, heads, d] -> view [B, heads, T, d] in the accumulate dtype, padded with zeros to head size `dim`.
at::Tensor kernel_view(const at::Tensor& x, int64_t dim) {
  auto wide = x.to(precision::accumulate_dtype(x.scalar_type()));
  if (wide.size(3) < dim) wide = at::constant_pad_nd(wide, {0, dim - wide.size(3)});
  if (wide.stride(3) != 1) wide = wide.contiguous();
  return wide.permute({1, 2, 0, 3});
}

// The reverse: [B, heads, T, d] -> contiguous [T, B, heads, dim] of dtype.
at::Tensor token_major(const at::Tensor& x, int64_t dim, at::ScalarType dtype) {
  return x.narrow(3, 0, dim).permute({2, 0, 1, 3}).to(dtype).contiguous();
}

void check_block(const AttentionBlock& block, int64_t num_queries, int64_t num_keys) {
  PENT_CHECK(block.query_first >= 0 && block.query_count >= 0 && block.key_first >= 0 && block.key_count >= 0);
  PENT_CHECK(block.query_first + block.query_count <= num_queries, "block ends at query {} of {}",
             block.query_first + block.query_count, num_queries);
  PENT_CHECK(block.key_first + block.key_count <= num_keys, "block ends at key {} of {}",
             block.key_first + block.key_count, num_keys);
  PENT_CHECK(!block.causal || block.query_count == block.key_count, "a causal block of {} queries and {} keys",
             block.query_count, block.key_count);
}

// The blocks that compute something, by query range and then by first key.
std::vector<AttentionBlock> ordered(const std::vector<AttentionBlock>& blocks, const at::Tensor& q,
                                    const at::Tensor& k) {
  std::vector<AttentionBlock> list;
  for (const auto& block : blocks) {
    check_block(block, q.size(0), k.size(0));
    if (block.query_count > 0 && block.key_count > 0) list.push_back(block);
  }
  std::stable_sort(list.begin(), list.end(), [](const AttentionBlock& a, const AttentionBlock& b) {
    return std::tie(a.query_first, a.key_first) < std::tie(b.query_first, b.key_first);
  });
  for (size_t i = 1; i < list.size(); ++i) {
    const auto &last = list[i - 1], &block = list[i];
    const bool same = last.query_first == block.query_first && last.query_count == block.query_count;
    PENT_CHECK(same || last.query_first + last.query_count <= block.query_first,
               "query ranges at {} and {} overlap but differ", last.query_first, block.query_first);
  }
  return list;
}

void check_heads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  PENT_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4);
  PENT_CHECK(q.size(1) == k.size(1) && k.size(1) == v.size(1) && k.size(0) == v.size(0) && k.size(2) == v.size(2));
  PENT_CHECK(q.size(3) == k.size(3) && v.size(3) <= q.size(3), "head sizes {}, {}, {}", q.size(3), k.size(3),
             v.size(3));
  PENT_CHECK(k.size(2) > 0 && q.size(2) % k.size(2) == 0, "{} query heads on {} key heads", q.size(2), k.size(2));
}

at::Tensor queries(const at::Tensor& x, const AttentionBlock& block) {
  return x.narrow(2, block.query_first, block.query_count);
}
at::Tensor keys(const at::Tensor& x, const AttentionBlock& block) {
  return x.narrow(2, block.key_first, block.key_count);
}

bool covers(const std::vector<AttentionBlock>& list, int64_t num_queries) {
  return list.size() == 1 && list[0].query_count == num_queries;
}

}  // namespace

AttentionResult attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const std::vector<AttentionBlock>& blocks, double scale) {
  const at::NoGradGuard no_grad;
  check_heads(q, k, v);
  const auto list = ordered(blocks, q, k);
  const int64_t dim = q.size(3);
  const auto qs = kernel_view(q, dim), ks = kernel_view(k, dim), vs = kernel_view(v, dim);
  const bool plain = use_aten(q, k, v);
  const auto run = [&](const AttentionBlock& block) -> std::tuple<at::Tensor, at::Tensor> {
    if (plain) {
      auto [out, lse] =
          aten::attention_block(queries(qs, block), keys(ks, block), keys(vs, block), block.causal, scale);
      return {out, lse};
    }
    return at::_scaled_dot_product_flash_attention_for_cpu(queries(qs, block), keys(ks, block), keys(vs, block), 0.0,
                                                           block.causal, {}, scale);
  };
  if (covers(list, q.size(0))) {
    auto [out, lse] = run(list[0]);
    return {token_major(out, v.size(3), q.scalar_type()), lse.contiguous()};
  }
  const auto merged = at::zeros(qs.sizes(), qs.options());
  auto merged_lse =
      at::full({qs.size(0), qs.size(1), qs.size(2)}, -std::numeric_limits<double>::infinity(), qs.options());
  for (size_t i = 0; i < list.size(); ++i) {
    const auto& block = list[i];
    auto [out, lse] = run(block);
    auto into = queries(merged, block), into_lse = queries(merged_lse, block);
    const bool first = i == 0 || list[i - 1].query_first != block.query_first;
    if (first) {
      into.copy_(out);
      into_lse.copy_(lse);
      continue;
    }
    const auto both = into_lse.logaddexp(lse);
    into.mul_((into_lse - both).exp_().unsqueeze(3)).addcmul_(out, (lse - both).exp_().unsqueeze(3));
    into_lse.copy_(both);
  }
  return {token_major(merged, v.size(3), q.scalar_type()), merged_lse};
}

AttentionGrads attention_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const at::Tensor& out, const at::Tensor& lse,
                                  const std::vector<AttentionBlock>& blocks, double scale) {
  const at::NoGradGuard no_grad;
  check_heads(q, k, v);
  const auto list = ordered(blocks, q, k);
  const int64_t dim = q.size(3);
  const auto qs = kernel_view(q, dim), ks = kernel_view(k, dim), vs = kernel_view(v, dim);
  const auto douts = kernel_view(dout, dim), outs = kernel_view(out, dim);
  const auto dq = at::zeros(qs.sizes(), qs.options()), dk = at::zeros(ks.sizes(), ks.options());
  const auto dv = at::zeros(vs.sizes(), vs.options());
  const bool plain = use_aten(dout, q, k, v, out, lse);
  const auto run = [&](const AttentionBlock& block) -> std::tuple<at::Tensor, at::Tensor, at::Tensor> {
    const auto d = queries(douts, block), o = queries(outs, block), l = queries(lse, block);
    const auto qb = queries(qs, block), kb = keys(ks, block), vb = keys(vs, block);
    if (plain) {
      auto grads = aten::attention_block_backward(d, qb, kb, vb, o, l, block.causal, scale);
      return {grads.dq, grads.dk, grads.dv};
    }
    return at::_scaled_dot_product_flash_attention_for_cpu_backward(d, qb, kb, vb, o, l, 0.0, block.causal, {}, scale);
  };
  for (const auto& block : list) {
    const auto [dq_block, dk_block, dv_block] = run(block);
    queries(dq, block).add_(dq_block);
    keys(dk, block).add_(dk_block);
    keys(dv, block).add_(dv_block);
  }
  return {token_major(dq, dim, q.scalar_type()), token_major(dk, dim, k.scalar_type()),
          token_major(dv, v.size(3), v.scalar_type())};
}

}  // namespace penteract::ops
