// The ranks of a run in one process: starts the rank threads, ends all when one fails, returns the first cause.
// Thread-safety: run_* may be called from any thread that is no rank; a RankContext is its own rank thread's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penteract/base/memory_ledger.h"
#include "penteract/base/result.h"
#include "penteract/comm/group.h"

namespace penteract::comm {

class DeviceBackend;
class DeviceEnd;
class World;

struct WorldOptions {
  std::chrono::milliseconds deadline = std::chrono::minutes(10);  // of every wait, in every group
  // Checksum what is published and verify it before the producer may reuse it: finds a write into a buffer in flight.
  // Builds with a sanitizer do unless told otherwise.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  bool check_buffers = true;
#else
  bool check_buffers = false;
#endif
  int intra_op_threads = 0;                    // a rank; 0 = max(1, cores / ranks)
  uint64_t memory_limit_bytes = 0;             // a rank; 0 = none
  std::shared_ptr<DeviceBackend> device = {};  // where tensors may lie besides the host; null: nowhere
  // Called once, before run_* returns, when the run failed: the flight records of all ranks as text.
  std::function<void(const std::string& records)> on_flight_records = {};
};

// What a rank sent under one operation of one group, by the formula of topology/collective_cost.h.
struct Traffic {
  std::string group;
  std::string operation;
  int64_t num_calls = 0;
  int64_t payload_bytes = 0;  // of the tensors
  int64_t sent_bytes = 0;     // that left this rank
  int64_t num_steps = 0;
};

struct RankContext {
  int rank = 0;
  int num_ranks = 1;
  Group world;
  MemoryAccount& memory;  // of the device where the rank has one, else of the host
  at::Device device;      // where the rank's tensors belong
  std::shared_ptr<World> owner;

  // The group of these ranks (ascending, without repeats, this rank among them). Needs no communication: members may
  // ask in any order and at any time. Equal lists share one call order; the name is for reports.
  Group make_group(const std::vector<int>& ranks, std::string name) const;
  // The most that the device's allocator took for this rank so far; 0 on the host.
  uint64_t peak_reserved_bytes() const;
  // What this rank has sent so far, by group and operation.
  std::vector<Traffic> traffic() const;
  // The flight records of all ranks as text: what each does and did last.
  std::string flight_records() const;
};

// Runs fn on num_ranks threads. In each: current_rank(), the rank's memory account, intra-op threads, autograd's own
// worker threads off. The first rank that throws or returns an error ends the world: the others' communication throws
// CommError within a moment, and only the first cause is returned, its culprit naming the rank.
// Codes: that of a returned Error or ErrorException; out_of_memory; comm_deadline, comm_failed; defect for any other
// exception. Installs the ledger allocator (ledger_allocator.h).
Status run_rank_threads(int num_ranks, WorldOptions options, const std::function<Status(RankContext&)>& fn);

// Runs fn as one rank of a world of num_ranks whose other ranks do not exist (the fake transport): nothing moves,
// shapes are right, traffic is counted. Received tensors are zeros, all-reduced ones stay as they are, and
// all_gather_int64 returns this rank's numbers once a member.
Status run_fake_rank(int rank, int num_ranks, WorldOptions options, const std::function<Status(RankContext&)>& fn);

}  // namespace penteract::comm
