// The operators of ops/ by plain ATen calls, for tensors of any device. Shapes, dtypes, rounding and the rules for NaN
// and ties are those of the headers of ops/, whose functions check the arguments and then choose between the kernels and
// these (aten_scope.h); what only the values of a device's tensor could tell (an index out of range) is left to ATen.
// Deterministic on every device: sums run over a dimension or over sorted indices, never by atomic additions of floating
// point numbers. Nothing waits for the device, except where a result is a number of the host.
// Thread-safety: pure functions. Gradients are off where these are called.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "penteract/ops/adamw.h"
#include "penteract/ops/permute.h"
#include "penteract/ops/rms_norm.h"
#include "penteract/ops/rope.h"
#include "penteract/ops/router.h"

namespace penteract::ops::aten {

// matmul.h and grouped_matmul.h
at::Tensor matmul_nt(const at::Tensor& x, const at::Tensor& w);
at::Tensor matmul_nn(const at::Tensor& dy, const at::Tensor& w);
void wgrad_accumulate(const at::Tensor& dy, const at::Tensor& x, at::Tensor main_grad);
at::Tensor grouped_matmul_nt(const at::Tensor& x, const at::Tensor& w, const std::vector<int64_t>& counts);
at::Tensor grouped_matmul_nn(const at::Tensor& dy, const at::Tensor& w, const std::vector<int64_t>& counts);
void grouped_wgrad_accumulate(const at::Tensor& dy, const at::Tensor& x, const std::vector<int64_t>& counts,
                              at::Tensor main_grad);

// rms_norm.h
RmsNormResult rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);
RmsNormGrads rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& rstd);

// rope.h
at::Tensor rope(const at::Tensor& x, const RopeTables& tables, bool inverse);

// swiglu.h
at::Tensor swiglu(const at::Tensor& gate_up);
at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up);

// One block of attention.h: q [B,hq,T,d], k and v [B,hkv,Tk,d] in the accumulate dtype, any strides. T, Tk > 0.
struct BlockResult {
  at::Tensor out;  // like q
  at::Tensor lse;  // [B,hq,T]
};
BlockResult attention_block(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, double scale);

// out and lse: merged over all blocks of the queries.
struct BlockGrads {
  at::Tensor dq, dk, dv;  // like q, k, v
};
BlockGrads attention_block_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k,
                                    const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse, bool causal,
                                    double scale);

// cross_entropy.h
at::Tensor row_max(const at::Tensor& logits);
at::Tensor row_sum_exp(const at::Tensor& logits, const at::Tensor& max);
at::Tensor target_logits(const at::Tensor& logits, const at::Tensor& targets, int64_t first);
void cross_entropy_backward_(const at::Tensor& logits, const at::Tensor& lse, const at::Tensor& targets, int64_t first,
                             const at::Tensor& dloss);

// router.h
RouterChoice router_choose(const at::Tensor& logits, int64_t k, bool norm_topk_prob, const at::Tensor& bias,
                           const at::Tensor& replay);
at::Tensor router_backward(const at::Tensor& dweights, const at::Tensor& dprobs_extra, const RouterChoice& choice,
                           bool norm_topk_prob);

// permute.h
at::Tensor gather_rows(const at::Tensor& x, const at::Tensor& index);
at::Tensor scatter_add_rows(const at::Tensor& y, const at::Tensor& index, int64_t num_rows);
void add_rows(at::Tensor into, const at::Tensor& index, const at::Tensor& rows);
at::Tensor combine_rows(const at::Tensor& y, const at::Tensor& index, const at::Tensor& weights);
CombineGrads combine_rows_backward(const at::Tensor& dout, const at::Tensor& y, const at::Tensor& index,
                                   const at::Tensor& weights);

// adamw.h
void adamw_step(at::Tensor master, at::Tensor exp_avg, at::Tensor exp_avg_sq, const at::Tensor& grad,
                const AdamwStep& step);
void round_to(const at::Tensor& master, at::Tensor out);
SumOfSquares sum_of_squares(const at::Tensor& flat);

}  // namespace penteract::ops::aten
