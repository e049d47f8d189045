#include "penteract/families/qwen3/family.h"

#include "penteract/families/common/config_keys.h"
#include "penteract/families/common/rope_keys.h"
#include "penteract/families/common/weight_rules.h"

namespace penteract::families::qwen3 {
namespace {

// Defaults are the published values of Qwen3-8B.
Status read(ConfigTable& t, spec::ModelSpec& m) {
  m.rope_theta = 1e6;
  m.norm_eps = 1e-6;
  m.qk_norm = true;
  PENT_TRY(common::read_decoder_sizes(t, m));
  PENT_TRY(common::read_dense_mlp(t, m));
  PENT_TRY(common::read_rope(t, m, false));
  PENT_TRY(common::require_plain_attention(t));
  return {};
}

std::string write(const spec::ModelSpec& m) {
  return common::write_decoder_sizes(m) + common::write_rope(m) + common::write_dense_mlp(m);
}

}  // namespace

Family family() { return {"qwen3", read, write, common::decoder_tensors}; }

}  // namespace penteract::families::qwen3
