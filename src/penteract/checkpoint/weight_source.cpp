#include "penteract/checkpoint/weight_source.h"

#include <fmt/format.h>

#include <set>

namespace penteract::checkpoint {

Status StepWeights::check(const std::vector<spec::Param>& table) const {
  // A tensor that no parameter asks for would be lost in silence.
  std::set<std::string> known;
  for (const auto& param : table) {
    for (const char* prefix : kParamTensors) known.insert(prefix + param.name);
    const TensorInfo* info = reader_.find(kParamTensors[0] + param.name);
    if (info == nullptr || info->shape != param.shape) {
      return Error{ErrorCode::checkpoint_mismatch,
                   fmt::format("the checkpoint {} \"{}\" of the model",
                               info == nullptr ? "lacks" : "holds another shape of", param.name),
                   param.name, "use the model that wrote it"};
    }
  }
  for (const auto& info : reader_.tensors()) {
    if (!known.count(info.name)) {
      return Error{ErrorCode::checkpoint_mismatch,
                   fmt::format("the checkpoint holds \"{}\", which the model does not have", info.name), info.name,
                   "use the model that wrote it"};
    }
  }
  return {};
}

Status StepWeights::read(const std::string& param, const topology::Slice& slice, const at::Tensor& out) const {
  return reader_.read(kParamTensors[0] + param, slice, out);
}

}  // namespace penteract::checkpoint
