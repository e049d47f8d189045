// Where the members of one group meet in shared memory: a meeting an exchange, a mailbox a member.
// Thread-safety: as each member says. Counters of a member are its own thread's.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "penteract/comm/counter.h"
#include "penteract/comm/device.h"
#include "penteract/comm/transport.h"

namespace penteract::comm {

// One exchange: what each member published, who has come, who has read.
struct Meeting {
  struct Post {
    Call call;
    std::vector<Bytes> to_members;
    std::vector<std::byte> copied;  // owns small ranges
    at::Tensor keep;                // a producer that unwinds must not free what peers read
    DevicePointPtr written;         // of a device call: the ranges are written
    DevicePointPtr done_reading;    // of a device call: this member's reads of the others' ranges
    std::atomic<bool> come{false};
    std::atomic<bool> read{false};  // this member has read all others' ranges
  };
  explicit Meeting(size_t num_members) : posts(num_members) {}
  std::vector<Post> posts;
  Counter num_come, num_read;
  size_t num_found = 0;  // guarded by the hub
};

struct Message {
  Call call;
  Bytes bytes;
  std::vector<std::byte> copied;
  at::Tensor keep;
  DevicePointPtr written, taken_by;  // of a device call
  Counter taken;
};

class Hub {
 public:
  explicit Hub(size_t num_members) : boxes_(num_members), members_(num_members) {}

  // The meeting of an exchange; forgotten here once every member has found it.
  std::shared_ptr<Meeting> meet(uint64_t sequence);

  struct Key {
    int from;
    uint64_t channel;
    uint64_t number;
    auto operator<=>(const Key&) const = default;
  };
  struct Mailbox {
    std::mutex mutex;
    std::map<Key, std::shared_ptr<Message>> messages;
    Counter num_messages;
  };
  Mailbox& box(int member) { return boxes_[member]; }

  // How far a member is in the group's call order.
  struct Member {
    uint64_t next_sequence = 0;
    std::map<std::pair<int, uint64_t>, uint64_t> next_sent, next_received;  // by (peer, channel)
  };
  Member& member(int index) { return members_[index]; }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<Meeting>> meetings_;
  std::vector<Mailbox> boxes_;
  std::vector<Member> members_;
};

}  // namespace penteract::comm
