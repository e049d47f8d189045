// Starts rank threads for a test: run_ranks(n, fn) fails the test when a rank throws or returns an error.
// fn must not use gtest's fatal assertions (they only leave fn, and its peers wait); EXPECT_* is safe in any thread.
#pragma once

#include <functional>

#include "penteract/comm/world.h"

namespace penteract::testing {

// With the buffer check on and a deadline of 20 s.
comm::WorldOptions test_world_options();

void run_ranks(int num_ranks, const std::function<void(comm::RankContext&)>& fn);
void run_ranks(int num_ranks, comm::WorldOptions options, const std::function<void(comm::RankContext&)>& fn);

}  // namespace penteract::testing
