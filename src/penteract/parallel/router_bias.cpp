#include "penteract/parallel/router_bias.h"

#include <ATen/ops/empty.h>

#include <numeric>

namespace penteract::parallel {

void update_router_biases(ParamStore& store, const std::vector<int64_t>& counts, double rate) {
  for (FlatBuffer& b : store.buffers()) {
    for (const OwnedPiece& piece : store.owned_pieces(b)) {
      const spec::Param& param = store.table()[piece.param];
      if (param.trained) continue;
      const int64_t num_experts = param.shape[0];
      const int64_t* n = counts.data() + param.layer * num_experts;
      const int64_t total = std::accumulate(n, n + num_experts, int64_t{0});
      at::Tensor step = at::empty({piece.count}, at::kDouble);
      auto* out = step.data_ptr<double>();
      for (int64_t i = 0; i < piece.count; ++i) {
        // mean − n_e in whole numbers: n_e · E against the total.
        const int64_t excess = n[piece.slice.offset[0] + i] * num_experts - total;
        out[i] = excess < 0 ? rate : excess > 0 ? -rate : 0;
      }
      b.master.narrow(0, piece.shard_first, piece.count).add_(step.to(b.master.options()));
    }
  }
}

}  // namespace penteract::parallel
