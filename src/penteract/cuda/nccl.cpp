#include "penteract/cuda/nccl.h"

#include <fmt/format.h>

#include "penteract/base/result.h"
#include "penteract/comm/error.h"

namespace penteract::cuda {

void check_nccl(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  throw comm::CommError(Error{ErrorCode::comm_failed, fmt::format("{}: {}", what, ncclGetErrorString(result)), "NCCL",
                              "set NCCL_DEBUG=WARN to see more"});
}

NcclCommunicators::~NcclCommunicators() {
  for (auto& [key, members] : groups_) {
    for (ncclComm_t comm : members) aborted_ ? ncclCommAbort(comm) : ncclCommDestroy(comm);
  }
}

ncclComm_t NcclCommunicators::get(const std::vector<int>& ranks, int channel, int member) {
  const std::lock_guard lock(mutex_);
  if (aborted_) throw comm::CommError(Error{ErrorCode::comm_failed, "a rank failed", "NCCL", ""});
  auto& members = groups_[{ranks, channel}];
  if (members.empty()) {
    members.resize(ranks.size());
    check_nccl(ncclCommInitAll(members.data(), static_cast<int>(ranks.size()), ranks.data()), "ncclCommInitAll");
  }
  return members[member];
}

void NcclCommunicators::abort() noexcept {
  const std::lock_guard lock(mutex_);
  if (aborted_) return;
  aborted_ = true;
  for (auto& [key, members] : groups_) {
    for (ncclComm_t comm : members) ncclCommAbort(comm);
    members.clear();
  }
}

}  // namespace penteract::cuda
