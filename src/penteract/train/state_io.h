// Between a ParamStore and checkpoints: the pieces a rank owns, and reading them back. Thread-safety: a rank's thread.
#pragma once

#include <string>
#include <vector>

#include "penteract/checkpoint/step_writer.h"
#include "penteract/checkpoint/weight_source.h"
#include "penteract/parallel/param_store.h"

namespace penteract::train {

// The owned shards, views on the CPU and copies from a device: "master.NAME", "exp_avg.NAME", "exp_avg_sq.NAME", each element on one rank.
std::vector<checkpoint::Piece> checkpoint_pieces(parallel::ParamStore& store);

// Masters and moments of the owned shards, whatever layout wrote them; then the weights. Errors: those of Reader;
// checkpoint_mismatch where the checkpoint holds tensors that the model does not have.
// COLLECTIVE: every class (after success on this rank).
Status load_training_state(const checkpoint::Reader& reader, parallel::ParamStore& store);

// Weights alone: ParamStore::load_weights from a source that holds exactly the store's parameters.
Status load_weights(const checkpoint::WeightSource& source, parallel::ParamStore& store);

}  // namespace penteract::train
