// Attention as a list of blocks: context parallelism, packing and document masks are lists, not kernels. Each block
// attends a range of local query rows to a range of the given key rows; blocks that share queries are merged in list
// order of their first key by log-sum-exp; the backward runs each block with the merged output and log-sum-exp.
// Shapes: T tokens, B sequences, heads, d = head size. Grouped-query: query head h reads key head h / (hq / hkv).
// Thread-safety: pure functions. Deterministic for a given number of intra-op threads. Gradients are off inside.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace penteract::ops {

// Rows of the query range see all keys of the key range, or, causal, row i sees keys 0..i of it (equal counts).
struct AttentionBlock {
  int64_t query_first = 0, query_count = 0;
  int64_t key_first = 0, key_count = 0;
  bool causal = false;
};

struct AttentionResult {
  at::Tensor out;  // [Tq, B, hq, dv] contiguous, dtype of q; zero for a query that no block covers
  at::Tensor lse;  // [B, hq, Tq], accumulate dtype; -inf for a query that no block covers
};

struct AttentionGrads {
  at::Tensor dq, dk, dv;  // like q, k, v, contiguous; summed over blocks in the accumulate dtype, rounded once
};

// q [Tq, B, hq, d], k [Tk, B, hkv, d], v [Tk, B, hkv, dv], dv <= d, any strides; hq a multiple of hkv.
// A bfloat16 input is widened to float, so that scores and probabilities are not rounded between the products.
// REQUIRES: ranges inside the tensors; two blocks have equal or disjoint query ranges. Scores are scale · q·k.
AttentionResult attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const std::vector<AttentionBlock>& blocks, double scale);

AttentionGrads attention_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const at::Tensor& out, const at::Tensor& lse,
                                  const std::vector<AttentionBlock>& blocks, double scale);

}  // namespace penteract::ops
