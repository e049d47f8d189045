#include "penteract/families/llama/family.h"

#include "penteract/families/common/config_keys.h"
#include "penteract/families/common/rope_keys.h"
#include "penteract/families/common/weight_rules.h"

namespace penteract::families::llama {
namespace {

// Defaults are the published values of Llama 3.
Status read(ConfigTable& t, spec::ModelSpec& m) {
  m.rope_theta = 5e5;
  m.norm_eps = 1e-5;
  m.max_position_embeddings = 131072;
  PENT_TRY(common::read_decoder_sizes(t, m));
  PENT_TRY(common::read_dense_mlp(t, m));
  PENT_TRY(common::read_rope(t, m, true));
  PENT_TRY(common::require_value(t, "mlp_bias", false));
  PENT_TRY(common::require_plain_attention(t));
  common::accept_irrelevant(t, {"pretraining_tp"});
  return {};
}

std::string write(const spec::ModelSpec& m) {
  return common::write_decoder_sizes(m) + common::write_rope(m) + common::write_dense_mlp(m);
}

}  // namespace

Family family() { return {"llama", read, write, common::decoder_tensors}; }

}  // namespace penteract::families::llama
