// Ranks that share one outcome: what one rank found is what all know. Thread-safety: as comm::Group.
#pragma once

#include <string>

#include "penteract/base/result.h"
#include "penteract/comm/group.h"

namespace penteract::checkpoint {

// The error of the first member that has one, its culprit naming that rank; ok when all are ok.   COLLECTIVE: group
Status agree(const comm::Group& group, const Status& mine);

// The text of member 0, on all.   COLLECTIVE: group
std::string broadcast_text(const comm::Group& group, const std::string& mine, int root_index = 0);

}  // namespace penteract::checkpoint
