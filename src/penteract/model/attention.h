// Grouped-query attention with optional QK-norm and rotary positions. Thread-safety: a rank's own thread.
#pragma once

#include <vector>

#include "penteract/model/block_context.h"
#include "penteract/parallel/param_store.h"
#include "penteract/spec/model_spec.h"

namespace penteract::model {

class Attention {
 public:
  Attention(const spec::ModelSpec& model, int layer, const parallel::ParamStore& store, const parallel::Groups& groups);
  static parallel::Fusion fusion(int layer);

  // x [T_sp, H] -> [T_sp, H]. COLLECTIVE: tp, cp.
  at::Tensor forward(const at::Tensor& x, const BlockContext& context) const;

 private:
  int64_t heads_local_, kv_heads_local_, head_dim_;
  double eps_;
  std::vector<const parallel::Parameter*> qkv_;
  const parallel::Parameter* out_;
  const parallel::Parameter* q_norm_ = nullptr;
  const parallel::Parameter* k_norm_ = nullptr;
};

}  // namespace penteract::model
