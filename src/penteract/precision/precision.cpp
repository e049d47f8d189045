#include "penteract/precision/precision.h"

#include "penteract/base/check.h"

namespace penteract::precision {

Precision make_precision(spec::Recipe recipe) {
  switch (recipe) {
    case spec::Recipe::fp64: return {recipe, at::kDouble, at::kDouble};
    case spec::Recipe::fp32: return {recipe, at::kFloat, at::kFloat};
    case spec::Recipe::bf16: return {recipe, at::kBFloat16, at::kFloat};
  }
  PENT_CHECK(false, "recipe {}", static_cast<int>(recipe));
}

at::ScalarType accumulate_dtype(at::ScalarType dtype) { return dtype == at::kDouble ? at::kDouble : at::kFloat; }

}  // namespace penteract::precision
