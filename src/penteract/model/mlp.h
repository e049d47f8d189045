// The feed-forward half of a layer: a dense SwiGLU MLP or a mixture of SwiGLU experts.
// Thread-safety: a rank's own thread.
#pragma once

#include <memory>
#include <vector>

#include "penteract/model/block_context.h"
#include "penteract/parallel/param_store.h"
#include "penteract/spec/model_spec.h"

namespace penteract::model {

class FeedForward {
 public:
  virtual ~FeedForward() = default;
  // x [T_sp, H] -> [T_sp, H].
  virtual at::Tensor forward(const at::Tensor& x, const BlockContext& context) const = 0;
};

// The kind that the ModelSpec names for the layer.
std::unique_ptr<FeedForward> make_feed_forward(const spec::ModelSpec& model, int layer,
                                               const parallel::ParamStore& store);
parallel::Fusion feed_forward_fusion(const spec::ModelSpec& model, int layer);

}  // namespace penteract::model
