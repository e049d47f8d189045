#include "penteract/spec/flops.h"

#include "penteract/spec/param_table.h"

namespace penteract::spec {

double forward_flops_per_token(const ModelSpec& m, int64_t seq_length) {
  double active = 0;
  for (const Param& p : param_table(m)) {
    if (p.place == Place::embedding) continue;
    const double share =
        p.ep_dim >= 0 ? static_cast<double>(m.num_experts_per_tok) / static_cast<double>(m.num_experts) : 1;
    active += share * static_cast<double>(p.num_elements());
  }
  return 2 * active + 2.0 * static_cast<double>(seq_length * m.num_heads * m.head_dim * m.num_layers);
}

}  // namespace penteract::spec
