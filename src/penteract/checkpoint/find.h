// Finds the step to resume from. Thread-safety: pure function; the collective one as comm::Group.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "penteract/base/result.h"
#include "penteract/comm/group.h"

namespace penteract::checkpoint {

enum class Depth {
  sizes,  // state, catalogs and the sizes of data files
  bytes,  // every byte against its checksum: one more reading of the newest step
};

// The directory of the complete step with the highest number; nothing when there is none. Looks at the directories, not
// at `latest`, which may be lost or behind. Each step that it passes over, each save that did not finish, and a
// `latest` that says otherwise, is one line in `notes`. Names that are no steps are ignored. Errors: checkpoint_damaged
// when none is whole and one is damaged, or is incomplete though index.json says that it was committed: starting afresh
// would hide the loss. A step under another number than its own counts as damaged.
Result<std::optional<std::string>> find_newest(const std::string& checkpoints_dir, std::vector<std::string>* notes,
                                               Depth depth = Depth::bytes);

// Member 0 looks, the others are told; `notes` are filled on member 0 alone.   COLLECTIVE: group
Result<std::optional<std::string>> find_newest(const comm::Group& group, const std::string& checkpoints_dir,
                                               std::vector<std::string>* notes, Depth depth = Depth::bytes);

}  // namespace penteract::checkpoint
