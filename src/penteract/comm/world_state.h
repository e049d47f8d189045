// What the ranks of one world share: the first failure, who has ended, the flight recorders, the groups' meeting
// points. Thread-safety: all functions.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "penteract/comm/counter.h"
#include "penteract/comm/error.h"
#include "penteract/comm/flight_recorder.h"
#include "penteract/comm/world.h"

namespace penteract::comm {

class DeviceEnd;
class Hub;

class World {
 public:
  // first_rank..first_rank + num_local - 1 live here (a fake world holds one of its ranks).
  World(int num_ranks, int first_rank, int num_local, WorldOptions options);
  ~World();

  int num_ranks() const { return num_ranks_; }
  bool is_fake() const { return num_local_ < num_ranks_; }
  const WorldOptions& options() const { return options_; }
  FlightRecorder& recorder(int rank) { return *recorders_.at(rank - first_rank_); }
  const std::string& keep_name(const std::string& name);
  std::shared_ptr<Hub> hub(const std::vector<int>& ranks);  // one a rank list

  // The first call ends the world and is its cause; later ones are ignored. The culprit gets the rank's name.
  void abort(int rank, Error cause);
  bool aborted() const { return aborted_.load(std::memory_order_acquire); }
  std::optional<Error> first_cause() const;
  std::string records_at_abort() const;
  // Throws CommError when the world has ended, naming the rank that was first.
  void check_alive() const {
    if (aborted()) throw_aborted();
  }
  // Ends the world with this cause and throws it.
  [[noreturn]] void fail(int rank, Error cause);

  // This rank's end of its device; null on the CPU. Set and used by the rank's thread.
  DeviceEnd* device_end(int rank) const { return device_ends_[rank - first_rank_]; }
  void set_device_end(int rank, DeviceEnd* end) { device_ends_[rank - first_rank_] = end; }

  // This rank's function has returned: whoever waits for it waits in vain.
  void leave(int rank) { left_[rank - first_rank_].store(true, std::memory_order_release); }

  // What a rank waits for, in group `group`.
  struct Wait {
    const Call& call;
    const std::string& group;
    const std::vector<int>& ranks;
    int rank;
    std::function<bool()> ready;
    std::function<std::vector<int>()> missing;  // the world's ranks that have not come
  };
  // Returns when ready(), which an add to `counter` made true. Throws CommError on abort, deadline, or a missing rank
  // that has ended. Spins a few microseconds where each rank has a core, then sleeps.
  void wait(Counter& counter, const Wait& wait);

  std::string flight_records() const;

 private:
  [[noreturn]] void throw_aborted() const;
  [[noreturn]] void give_up(const Wait& wait, ErrorCode code, const std::string& why);
  bool has_left(int rank) const;

  const int num_ranks_, first_rank_, num_local_;
  const WorldOptions options_;
  const int num_spins_;
  std::vector<std::unique_ptr<FlightRecorder>> recorders_;
  std::vector<std::atomic<bool>> left_;
  std::vector<DeviceEnd*> device_ends_;
  std::atomic<bool> aborted_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::optional<Error> first_cause_;
  std::string records_at_abort_;
  std::set<std::string> names_;
  std::map<std::vector<int>, std::shared_ptr<Hub>> hubs_;
};

}  // namespace penteract::comm
