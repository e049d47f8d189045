#include "penteract/model/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "penteract/parallel/context_attention.h"
#include "penteract/parallel/norm.h"
#include "penteract/parallel/rotary.h"

namespace penteract::model {
namespace {
std::string prefix(int layer) { return fmt::format("model.layers.{}.self_attn.", layer); }
}  // namespace

parallel::Fusion Attention::fusion(int layer) {
  const std::string p = prefix(layer);
  return {p + "q_proj.weight", p + "k_proj.weight", p + "v_proj.weight"};
}

Attention::Attention(const spec::ModelSpec& m, int layer, const parallel::ParamStore& store,
                     const parallel::Groups& groups)
    : heads_local_(m.num_heads / groups.layout.tp),
      kv_heads_local_(std::max<int64_t>(1, m.num_kv_heads / groups.layout.tp)),
      head_dim_(m.head_dim),
      eps_(m.norm_eps),
      qkv_(store.get(fusion(layer))),
      out_(store.get(prefix(layer) + "o_proj.weight")) {
  if (m.qk_norm) {
    q_norm_ = store.get(prefix(layer) + "q_norm.weight");
    k_norm_ = store.get(prefix(layer) + "k_norm.weight");
  }
}

at::Tensor Attention::forward(const at::Tensor& x, const BlockContext& c) const {
  const int64_t rows = c.batch->rows;
  const at::Tensor qkv = parallel::column_linear(x, qkv_, c.tensor_parallel);
  auto heads = [&](int64_t first, int64_t count) {
    return qkv.narrow(1, first * head_dim_, count * head_dim_).contiguous().view({-1, rows, count, head_dim_});
  };
  at::Tensor q = heads(0, heads_local_);
  at::Tensor k = heads(heads_local_, kv_heads_local_);
  const at::Tensor v = heads(heads_local_ + kv_heads_local_, kv_heads_local_);
  if (q_norm_ != nullptr) {
    q = parallel::rms_norm(q, *q_norm_, eps_, c.queue);
    k = parallel::rms_norm(k, *k_norm_, eps_, c.queue);
  }
  q = parallel::rotary(q, c.rope);
  k = parallel::rotary(k, c.rope);
  const at::Tensor out =
      parallel::context_attention(q, k, v, c.groups->cp, 1.0 / std::sqrt(static_cast<double>(head_dim_)));
  return parallel::row_linear(out.reshape({-1, heads_local_ * head_dim_}), *out_, c.tensor_parallel);
}

}  // namespace penteract::model
