// Balancing without a loss: the router biases move against the load (Wang et al. 2024, algorithm 1).
// Thread-safety: a rank's own thread.
#pragma once

#include <cstdint>
#include <vector>

#include "penteract/parallel/param_store.h"

namespace penteract::parallel {

// b += rate · sign(mean − n_e) for every router bias, on the owned shards of the masters; publish_weights() makes it
// seen. counts [layers · E]: choices of the non-pad tokens of the whole global batch, equal on all ranks. sign(0) = 0.
void update_router_biases(ParamStore& store, const std::vector<int64_t>& counts, double rate);

}  // namespace penteract::parallel
