// The last calls of one rank and what it sent so far. Written by the rank, read by whoever reports a failure.
// Thread-safety: all functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "penteract/comm/call.h"
#include "penteract/comm/world.h"

namespace penteract::comm {

class FlightRecorder {
 public:
  // `group` must outlive the recorder (the world keeps names). Returns the record's number.
  uint64_t issued(const Call& call, const std::string& group);
  void waiting(uint64_t record);
  void done(uint64_t record);

  // One line: what the rank waits in, or what it finished last.
  std::string summary() const;
  // The records kept, oldest first, a line each.
  std::string dump() const;
  std::vector<Traffic> traffic() const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : uint8_t { issued, waiting, done };
  struct Record {
    uint64_t number = 0;
    const std::string* group = nullptr;
    Call call;
    State state = State::issued;
    Clock::time_point since;
  };
  Record* find(uint64_t record);
  static std::string line(const Record& record, Clock::time_point now);

  static constexpr uint64_t kNumRecords = 64;
  mutable std::mutex mutex_;
  std::vector<Record> ring_;
  uint64_t num_records_ = 0;
  std::map<std::pair<const std::string*, const char*>, Traffic> traffic_;
};

}  // namespace penteract::comm
