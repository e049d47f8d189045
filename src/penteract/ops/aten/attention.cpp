#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

#include "penteract/ops/aten/aten.h"
#include "penteract/ops/aten/passes.h"

namespace penteract::ops::aten {
namespace {

// Some query rows of a block and the keys that they see. The query heads of a key head stand below each other, as rows
// of one matrix: [B, hkv, heads per key head · count, d].
class Pass {
 public:
  Pass(const at::Tensor& q, const at::Tensor& k, bool causal, int64_t first, int64_t count)
      : batch_(q.size(0)),
        kv_heads_(k.size(1)),
        repeat_(q.size(1) / k.size(1)),
        first_(first),
        count_(count),
        num_keys_(causal ? first + count : k.size(2)),
        causal_(causal) {}

  at::Tensor keys(const at::Tensor& x) const { return x.narrow(2, 0, num_keys_); }
  at::Tensor rows(const at::Tensor& x) const { return x.narrow(2, first_, count_); }
  at::Tensor folded(const at::Tensor& x) const {
    return rows(x).reshape({batch_, kv_heads_, repeat_ * count_, x.dim() == 4 ? x.size(3) : 1});
  }
  at::Tensor unfolded(const at::Tensor& x) const { return x.reshape({batch_, kv_heads_ * repeat_, count_, x.size(3)}); }
  // scale · q·k, -inf where the query does not see the key.
  at::Tensor scores(const at::Tensor& q, const at::Tensor& k, double scale) const {
    const auto scores = at::matmul(folded(q), keys(k).transpose(2, 3)).mul_(scale);
    if (!causal_) return scores;
    const auto hidden = at::ones({count_, num_keys_}, scores.options().dtype(at::kBool)).triu_(first_ + 1);
    scores.view({batch_, kv_heads_, repeat_, count_, num_keys_})
        .masked_fill_(hidden, -std::numeric_limits<double>::infinity());
    return scores;
  }

 private:
  int64_t batch_, kv_heads_, repeat_, first_, count_, num_keys_;
  bool causal_;
};

template <class F>
void for_query_rows(const at::Tensor& q, const at::Tensor& k, bool causal, const F& f) {
  for_passes(q.size(2), q.size(0) * q.size(1) * k.size(2),
             [&](int64_t first, int64_t count) { f(Pass(q, k, causal, first, count)); });
}

}  // namespace

BlockResult attention_block(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, double scale) {
  BlockResult result{at::empty({q.size(0), q.size(1), q.size(2), v.size(3)}, q.options()),
                     at::empty({q.size(0), q.size(1), q.size(2)}, q.options())};
  for_query_rows(q, k, causal, [&](const Pass& pass) {
    const auto scores = pass.scores(q, k, scale);
    const auto lse = at::logsumexp(scores, {3}, true);
    const auto probs = (scores - lse).exp_();
    pass.rows(result.out).copy_(pass.unfolded(at::matmul(probs, pass.keys(v))));
    pass.rows(result.lse).copy_(pass.unfolded(lse).squeeze(3));
  });
  return result;
}

BlockGrads attention_block_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k,
                                    const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse, bool causal,
                                    double scale) {
  BlockGrads grads{at::empty(q.sizes(), q.options()), at::zeros(k.sizes(), k.options()),
                   at::zeros(v.sizes(), v.options())};
  for_query_rows(q, k, causal, [&](const Pass& pass) {
    const auto probs = (pass.scores(q, k, scale) - pass.folded(lse)).exp_();
    const auto d = pass.folded(dout);
    const auto delta = (d * pass.folded(out)).sum(3, true);
    const auto dscores = (at::matmul(d, pass.keys(v).transpose(2, 3)) - delta).mul_(probs).mul_(scale);
    pass.rows(grads.dq).copy_(pass.unfolded(at::matmul(dscores, pass.keys(k))));
    pass.keys(grads.dk).add_(at::matmul(dscores.transpose(2, 3), pass.folded(q)));
    pass.keys(grads.dv).add_(at::matmul(probs.transpose(2, 3), d));
  });
  return grads;
}

}  // namespace penteract::ops::aten
