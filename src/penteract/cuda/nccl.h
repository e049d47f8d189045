// NCCL communicators of the rank threads of one process, one rank a device. Made and connected when they are first used,
// all members at once by whoever comes first: NCCL connects two ranks when they first send and receive, and a rank that
// sends would wait on the host for a peer that is sending too.
// Thread-safety: all functions; a communicator is used by its member's thread alone.
#pragma once

#include <nccl.h>

#include <map>
#include <mutex>
#include <vector>

namespace penteract::cuda {

class NcclCommunicators {
 public:
  ~NcclCommunicators();
  // The communicator of `member` in the group of these ranks (a rank's device has its number); `channel` keeps apart
  // groups of equal ranks that must not wait for each other.
  ncclComm_t get(const std::vector<int>& ranks, int channel, int member);
  // Gives up what is in flight; afterwards get() throws.
  void abort() noexcept;

 private:
  using Key = std::pair<std::vector<int>, int>;
  std::mutex mutex_;
  std::map<Key, std::vector<ncclComm_t>> groups_;
  bool aborted_ = false;
};

// Throws on anything but success, with NCCL's words.
void check_nccl(ncclResult_t result, const char* what);

}  // namespace penteract::cuda
