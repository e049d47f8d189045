#include "penteract/comm/thread_transport.h"

#include <cstring>
#include <optional>

#include "penteract/base/check.h"
#include "penteract/base/hash.h"
#include "penteract/comm/device.h"

namespace penteract::comm {

std::shared_ptr<Meeting> Hub::meet(uint64_t sequence) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Meeting>& slot = meetings_[sequence];
  if (!slot) slot = std::make_shared<Meeting>(members_.size());
  std::shared_ptr<Meeting> meeting = slot;
  if (++meeting->num_found == members_.size()) meetings_.erase(sequence);
  return meeting;
}

namespace {

uint64_t checksum(Bytes bytes) { return bytes.size == 0 ? 0 : hash64(bytes.data, bytes.size); }

[[noreturn]] void fail_calls(const ThreadEnd& end, uint64_t sequence, int index_a, const Call& a, int index_b,
                             const Call& b) {
  end.world->fail(end.rank(), Error{ErrorCode::comm_failed,
                                    fmt::format("#{} of group {}: members call different things\n    rank {}: {}\n"
                                                "    rank {}: {}",
                                                sequence, *end.name, end.ranks[index_a], describe(a),
                                                end.ranks[index_b], describe(b)),
                                    "", "all ranks of a group make the same calls in the same order and sizes"});
}

[[noreturn]] void fail_written(const ThreadEnd& end, const Call& call, int reader) {
  end.world->fail(end.rank(),
                  Error{ErrorCode::comm_failed,
                        fmt::format("#{} of group {}, {}: the bytes that rank {} published for rank {} were written "
                                    "while in flight",
                                    call.sequence, *end.name, describe(call), end.rank(), end.ranks[reader]),
                        "", "leave inputs and outputs alone until the call or its handle's wait() returns"});
}

class ThreadExchange : public Exchange {
 public:
  ThreadExchange(std::shared_ptr<const ThreadEnd> end, const Call& call, std::vector<Bytes> to_members, at::Tensor keep)
      : end_(std::move(end)), meeting_(end_->hub->meet(call.sequence)), post_(meeting_->posts[end_->index]) {
    PENT_CHECK_EQ(to_members.size(), end_->ranks.size());
    post_.call = call;
    post_.to_members = std::move(to_members);
    if (device() != nullptr) post_.written = device()->publish();
    copy_small();
    if (must_wait_) {
      post_.keep = std::move(keep);
      if (end_->world->options().check_buffers && device() == nullptr) {
        for (size_t i = 0; i < post_.to_members.size(); ++i) checksums_.push_back(checksum_for(i));
      }
    }
    post_.come.store(true, std::memory_order_release);
    if (meeting_->num_come.add() == post_.to_members.size()) meeting_->num_come.wake_all();
  }

  bool ready() const override { return all(meeting_->num_come); }

  std::span<const Bytes> receive() override {
    wait_all(meeting_->num_come, &Meeting::Post::come);
    const auto& posts = meeting_->posts;
    for (size_t i = 1; i < posts.size(); ++i) {
      if (!same_call(posts[0].call, posts[i].call)) {
        fail_calls(*end_, post_.call.sequence, 0, posts[0].call, static_cast<int>(i), posts[i].call);
      }
    }
    if (between_devices()) return receive_between_devices();
    for (const auto& post : posts) {
      if (device() != nullptr) device()->wait(post.written);
      views_.push_back(post.to_members[end_->index]);
    }
    return views_;
  }

  void release() override {
    if (device() != nullptr) post_.done_reading = device()->reached();
    post_.read.store(true, std::memory_order_release);
    if (meeting_->num_read.add() == meeting_->posts.size()) meeting_->num_read.wake_all();
  }

  void finish() override {
    // Between devices the own stream sent the ranges: what follows on it comes after.
    if (!must_wait_ || between_devices()) return;
    wait_all(meeting_->num_read, &Meeting::Post::read);
    if (device() != nullptr) {
      for (const auto& post : meeting_->posts) device()->wait(post.done_reading);
    }
    for (size_t i = 0; i < checksums_.size(); ++i) {
      if (checksum_for(i) != checksums_[i]) fail_written(*end_, post_.call, static_cast<int>(i));
    }
  }

 private:
  DeviceEnd* device() const { return post_.call.device; }
  bool between_devices() const { return device() != nullptr && !end_->world->options().device->one_device(); }

  std::span<const Bytes> receive_between_devices() {
    std::vector<size_t> sizes;
    for (const auto& post : meeting_->posts) sizes.push_back(post.to_members[end_->index].size);
    received_ = device()->exchange(end_->ranks, end_->index, post_.to_members, sizes);
    for (size_t i = 0; i < sizes.size(); ++i)
      views_.push_back({static_cast<const std::byte*>(received_[i].data_ptr()), sizes[i]});
    return views_;
  }

  bool all(const Counter& counter) const { return counter.value() == meeting_->posts.size(); }

  void wait_all(Counter& counter, std::atomic<bool> Meeting::Post::*flag) {
    const auto missing = [this, flag] {
      std::vector<int> ranks;
      for (size_t i = 0; i < meeting_->posts.size(); ++i) {
        if (!(meeting_->posts[i].*flag).load(std::memory_order_acquire)) ranks.push_back(end_->ranks[i]);
      }
      return ranks;
    };
    end_->world->wait(counter, {post_.call, *end_->name, end_->ranks, end_->rank(),
                                [this, &counter] { return all(counter); }, missing});
  }

  // Copies ranges that are small together (or one small range that all members get) into the post.
  void copy_small() {
    auto& ranges = post_.to_members;
    bool same = true;
    size_t total = 0;
    for (size_t i = 0; i < ranges.size(); ++i) {
      total += ranges[i].size;
      same = same && ranges[i].data == ranges[0].data && ranges[i].size == ranges[0].size;
      must_wait_ = must_wait_ || (ranges[i].size > 0 && static_cast<int>(i) != end_->index);
    }
    const size_t copied_size = same ? ranges[0].size : total;
    if (!must_wait_ || copied_size > kCopiedBytes || device() != nullptr) return;
    must_wait_ = false;
    post_.copied.resize(copied_size);
    size_t offset = 0;
    for (Bytes& range : ranges) {
      if (range.size == 0) continue;
      std::byte* to = post_.copied.data() + (same ? 0 : offset);
      if (!same || offset == 0) std::memcpy(to, range.data, range.size);
      range.data = to;
      offset += range.size;
    }
  }

  // This rank may write its own part, which no peer reads.
  uint64_t checksum_for(size_t i) const {
    const Bytes range = post_.to_members[i];
    if (static_cast<int>(i) == end_->index) return 0;
    if (i > 0 && i - 1 != static_cast<size_t>(end_->index) && range.data == post_.to_members[i - 1].data &&
        range.size == post_.to_members[i - 1].size && checksums_.size() == i) {
      return checksums_[i - 1];
    }
    return checksum(range);
  }

  std::shared_ptr<const ThreadEnd> end_;
  std::shared_ptr<Meeting> meeting_;
  Meeting::Post& post_;
  bool must_wait_ = false;
  std::vector<uint64_t> checksums_;
  std::vector<Bytes> views_;
  std::vector<at::Tensor> received_;  // between devices: what the views see
};

class ThreadSend : public Transfer {
 public:
  ThreadSend(std::shared_ptr<const ThreadEnd> end, std::shared_ptr<Message> message, int to_index)
      : end_(std::move(end)), message_(std::move(message)), ranks_{end_->rank(), end_->ranks[to_index]}, to_(to_index) {
    if (end_->world->options().check_buffers && message_->copied.empty() && message_->call.device == nullptr)
      checksum_ = checksum(message_->bytes);
  }
  bool ready() const override { return !message_->copied.empty() || message_->taken.value() != 0; }
  void finish() override {
    if (!message_->copied.empty()) return;
    end_->world->wait(message_->taken, {message_->call, *end_->name, ranks_, end_->rank(), [this] { return ready(); },
                                        [this] { return std::vector<int>{ranks_[1]}; }});
    if (message_->call.device != nullptr) message_->call.device->wait(message_->taken_by);
    if (checksum_ && checksum(message_->bytes) != *checksum_) fail_written(*end_, message_->call, to_);
  }

 private:
  std::shared_ptr<const ThreadEnd> end_;
  std::shared_ptr<Message> message_;
  std::vector<int> ranks_;
  int to_;
  std::optional<uint64_t> checksum_;
};

class ThreadReceive : public Transfer {
 public:
  ThreadReceive(std::shared_ptr<const ThreadEnd> end, const Call& call, Hub::Key key, MutableBytes into)
      : end_(std::move(end)), call_(call), key_(key), into_(into), ranks_{end_->ranks[key.from], end_->rank()} {}

  bool ready() const override {
    Hub::Mailbox& box = end_->hub->box(end_->index);
    std::lock_guard lock(box.mutex);
    return box.messages.count(key_) != 0;
  }

  void finish() override {
    Hub::Mailbox& box = end_->hub->box(end_->index);
    end_->world->wait(box.num_messages, {call_, *end_->name, ranks_, end_->rank(), [this] { return ready(); },
                                         [this] { return std::vector<int>{ranks_[0]}; }});
    std::shared_ptr<Message> message;
    {
      std::lock_guard lock(box.mutex);
      auto found = box.messages.find(key_);
      message = std::move(found->second);
      box.messages.erase(found);
    }
    const bool fits = message->call.dtype == call_.dtype && message->bytes.size == into_.size &&
                      (message->call.device == nullptr) == (call_.device == nullptr);
    if (!fits) fail_calls(*end_, call_.sequence, key_.from, message->call, end_->index, call_);
    take(*message);
    message->taken.add();
    message->taken.wake_all();
  }

 private:
  void take(Message& message) {
    if (into_.size == 0) return;
    DeviceEnd* device = call_.device;
    if (device == nullptr) {
      std::memcpy(into_.data, message.bytes.data, into_.size);
    } else if (end_->world->options().device->one_device()) {
      device->wait(message.written);
      device->copy(into_.data, message.bytes.data, into_.size);
      message.taken_by = device->reached();
    } else {
      device->publish();  // `into` may have been written or freed before on the compute stream
      device->receive(ranks_[0], into_);
    }
  }

  std::shared_ptr<const ThreadEnd> end_;
  Call call_;
  Hub::Key key_;
  MutableBytes into_;
  std::vector<int> ranks_;
};

}  // namespace

std::unique_ptr<Exchange> ThreadTransport::exchange(const Call& call, std::vector<Bytes> to_members, at::Tensor keep) {
  end_->world->check_alive();
  return std::make_unique<ThreadExchange>(end_, call, std::move(to_members), std::move(keep));
}

std::unique_ptr<Transfer> ThreadTransport::send(const Call& call, int to_index, uint64_t channel, Bytes bytes,
                                                at::Tensor keep) {
  end_->world->check_alive();
  auto message = std::make_shared<Message>();
  message->call = call;
  message->bytes = bytes;
  if (call.device != nullptr) {
    message->keep = std::move(keep);
    message->written = call.device->publish();
    if (!end_->world->options().device->one_device() && bytes.size > 0)
      message->taken_by = call.device->send(end_->ranks[to_index], bytes);
  } else if (bytes.size <= kCopiedBytes) {
    // One byte at least: an empty message too counts as copied.
    message->copied.resize(bytes.size + 1);
    if (bytes.size > 0) std::memcpy(message->copied.data(), bytes.data, bytes.size);
    message->bytes.data = message->copied.data();
  } else {
    message->keep = std::move(keep);
  }
  auto transfer = std::make_unique<ThreadSend>(end_, message, to_index);
  Hub::Mailbox& box = end_->hub->box(to_index);
  {
    std::lock_guard lock(box.mutex);
    box.messages.emplace(Hub::Key{end_->index, channel, call.sequence}, message);
  }
  box.num_messages.add();
  box.num_messages.wake_all();
  return transfer;
}

std::unique_ptr<Transfer> ThreadTransport::receive(const Call& call, int from_index, uint64_t channel,
                                                   MutableBytes into) {
  end_->world->check_alive();
  return std::make_unique<ThreadReceive>(end_, call, Hub::Key{from_index, channel, call.sequence}, into);
}

}  // namespace penteract::comm
