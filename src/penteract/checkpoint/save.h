// Saves a step from all ranks of a group. Synchronous: when it returns ok, the step is complete and durable.
// Thread-safety: as comm::Group.
#pragma once

#include <string>
#include <vector>

#include "penteract/checkpoint/step_writer.h"
#include "penteract/comm/group.h"

namespace penteract::checkpoint {

// Two phases: each rank writes and syncs its part under a temporary name; when all agree, member 0 commits by one
// rename, moves `latest` and deletes what `keep` (0: all stay) leaves over (retention.h). `mine` lists the pieces this
// rank owns; over all ranks they must cover each tensor exactly once. state.num_ranks is set here.
// The same arguments give the same bytes. On a failure of any rank all return its error, naming the rank; the temporary
// files are removed and the checkpoints before stay. What fails after the commit (`latest`, deletion of old steps) is a
// warning: the step is saved. COLLECTIVE: group
Status save(const comm::Group& group, const std::string& checkpoints_dir, SharedState state,
            const std::vector<Piece>& mine, int keep);

}  // namespace penteract::checkpoint
