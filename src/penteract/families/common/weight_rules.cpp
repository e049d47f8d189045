#include "penteract/families/common/weight_rules.h"

#include <fmt/format.h>

#include "penteract/spec/param_table.h"

namespace penteract::families::common {

std::vector<HfTensor> decoder_tensors(const spec::ModelSpec& model) {
  const std::string mark = ".experts.";
  std::vector<HfTensor> tensors;
  for (const spec::Param& param : spec::param_table(model)) {
    const topology::Slice whole = topology::Slice::whole(param.shape);
    if (param.grid == topology::Grid::dense) {
      tensors.push_back({param.name, param.shape, param.name, whole});
      continue;
    }
    const size_t at = param.name.find(mark) + mark.size();
    for (int64_t e = 0; e < param.shape[0]; ++e) {
      topology::Slice slice = whole;
      slice.offset[0] = e;
      slice.size[0] = 1;
      tensors.push_back({fmt::format("{}{}.{}", param.name.substr(0, at), e, param.name.substr(at)),
                         {param.shape.begin() + 1, param.shape.end()},
                         param.name,
                         std::move(slice)});
    }
  }
  return tensors;
}

}  // namespace penteract::families::common
