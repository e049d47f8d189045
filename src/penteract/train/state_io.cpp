#include "penteract/train/state_io.h"

#include <fmt/format.h>

#include <set>

namespace penteract::train {
namespace {

struct Kind {
  const char* prefix;
  at::Tensor parallel::FlatBuffer::*tensor;
};
constexpr Kind kKinds[] = {{"master.", &parallel::FlatBuffer::master},
                           {"exp_avg.", &parallel::FlatBuffer::exp_avg},
                           {"exp_avg_sq.", &parallel::FlatBuffer::exp_avg_sq}};

// A tensor that no parameter asks for would be lost in silence.
Status check_names(const checkpoint::Reader& reader, const parallel::ParamStore& store) {
  std::set<std::string> known;
  for (const auto& param : store.table()) {
    for (const Kind& kind : kKinds) known.insert(kind.prefix + param.name);
  }
  for (const auto& info : reader.tensors()) {
    if (!known.count(info.name)) {
      return Error{ErrorCode::checkpoint_mismatch,
                   fmt::format("the checkpoint holds \"{}\", which the model does not have", info.name), info.name,
                   "resume with the model that wrote it"};
    }
  }
  return {};
}

}  // namespace

std::vector<checkpoint::Piece> checkpoint_pieces(parallel::ParamStore& store) {
  std::vector<checkpoint::Piece> pieces;
  for (auto& buffer : store.buffers()) {
    for (const auto& owned : store.owned_pieces(buffer)) {
      const auto& param = store.table()[owned.param];
      for (const Kind& kind : kKinds) {
        pieces.push_back({kind.prefix + param.name, param.shape, owned.slice,
                          (buffer.*kind.tensor).narrow(0, owned.shard_first, owned.count)});
      }
    }
  }
  return pieces;
}

Status load_training_state(const checkpoint::Reader& reader, parallel::ParamStore& store) {
  PENT_TRY(check_names(reader, store));
  for (auto& buffer : store.buffers()) {
    for (const auto& owned : store.owned_pieces(buffer)) {
      for (const Kind& kind : kKinds) {
        PENT_TRY(reader.read(kind.prefix + store.table()[owned.param].name, owned.slice,
                             (buffer.*kind.tensor).narrow(0, owned.shard_first, owned.count)));
      }
    }
  }
  store.publish_weights();
  return {};
}

Status load_weights(const checkpoint::Reader& reader, parallel::ParamStore& store) {
  PENT_TRY(check_names(reader, store));
  for (auto& buffer : store.buffers()) {
    for (const auto& segment : buffer.segments) {
      PENT_TRY(reader.read("master." + store.table()[segment.param].name, segment.slice,
                           buffer.weight.narrow(0, segment.flat_first, segment.count)));
    }
  }
  return {};
}

}  // namespace penteract::train
