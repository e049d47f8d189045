#include "penteract/train/state_io.h"

#include <array>

#include "penteract/parallel/host_view.h"

namespace penteract::train {
namespace {

// In the order of checkpoint::kParamTensors.
constexpr std::array kTensors = {&parallel::FlatBuffer::master, &parallel::FlatBuffer::exp_avg,
                                 &parallel::FlatBuffer::exp_avg_sq};
static_assert(kTensors.size() == std::size(checkpoint::kParamTensors));

}  // namespace

std::vector<checkpoint::Piece> checkpoint_pieces(parallel::ParamStore& store) {
  std::vector<checkpoint::Piece> pieces;
  for (auto& buffer : store.buffers()) {
    for (const auto& owned : store.owned_pieces(buffer)) {
      const auto& param = store.table()[owned.param];
      for (size_t i = 0; i < kTensors.size(); ++i) {
        pieces.push_back({checkpoint::kParamTensors[i] + param.name, param.shape, owned.slice,
                          (buffer.*kTensors[i]).narrow(0, owned.shard_first, owned.count).cpu()});
      }
    }
  }
  return pieces;
}

Status load_training_state(const checkpoint::Reader& reader, parallel::ParamStore& store) {
  PENT_TRY(checkpoint::StepWeights(reader).check(store.table()));
  for (auto& buffer : store.buffers()) {
    for (const auto& owned : store.owned_pieces(buffer)) {
      for (size_t i = 0; i < kTensors.size(); ++i) {
        const parallel::HostView target((buffer.*kTensors[i]).narrow(0, owned.shard_first, owned.count));
        PENT_TRY(
            reader.read(checkpoint::kParamTensors[i] + store.table()[owned.param].name, owned.slice, target.host()));
      }
    }
  }
  store.publish_weights();
  return {};
}

Status load_weights(const checkpoint::WeightSource& source, parallel::ParamStore& store) {
  PENT_TRY(source.check(store.table()));
  return store.load_weights([&](const spec::Param& param, const topology::Slice& slice, const at::Tensor& out) {
    return source.read(param.name, slice, out);
  });
}

}  // namespace penteract::train
