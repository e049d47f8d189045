// The groups of one rank that the blocks of a model receive as arguments. There is no global parallel state.
// Thread-safety: a rank's own thread. Groups of one make every call a no-op.
#pragma once

#include "penteract/comm/world.h"
#include "penteract/topology/rank_grid.h"

namespace penteract::parallel {

struct Groups {
  topology::Layout layout;
  topology::Coord coord;
  comm::Group world;
  comm::Group tp, cp, pp;
  comm::Group tp_cp;    // the tokens of one sequence
  comm::Group dp_cp;    // the losses of all sequences
  comm::Group ep, etp;  // expert grid
  comm::Group etp_ep;   // all ranks that exchange tokens of one expert set; etp fastest
};

// Needs no communication.
Groups make_groups(const comm::RankContext& context, const topology::RankGrid& grid);

}  // namespace penteract::parallel
