#include "penteract/comm/flight_recorder.h"

namespace penteract::comm {

uint64_t FlightRecorder::issued(const Call& call, const std::string& group) {
  std::lock_guard lock(mutex_);
  const uint64_t number = num_records_++;
  if (ring_.size() < kNumRecords) ring_.emplace_back();
  ring_[number % kNumRecords] = {number, &group, call, State::issued, Clock::now()};
  Traffic& traffic = traffic_[{&group, call.operation}];
  traffic.num_calls += 1;
  traffic.payload_bytes += call.payload_bytes;
  traffic.sent_bytes += call.cost.sent_bytes;
  traffic.num_steps += call.cost.num_steps;
  return number;
}

FlightRecorder::Record* FlightRecorder::find(uint64_t record) {
  Record& found = ring_[record % kNumRecords];
  return found.number == record ? &found : nullptr;  // null: overwritten since
}

void FlightRecorder::waiting(uint64_t record) {
  std::lock_guard lock(mutex_);
  if (Record* found = find(record)) {
    found->state = State::waiting;
    found->since = Clock::now();
  }
}

void FlightRecorder::done(uint64_t record) {
  std::lock_guard lock(mutex_);
  if (Record* found = find(record)) {
    found->state = State::done;
    found->since = Clock::now();
  }
}

std::string FlightRecorder::line(const Record& record, Clock::time_point now) {
  const double age_s = std::chrono::duration<double>(now - record.since).count();
  const std::string what =
      fmt::format("#{} of group {}: {}", record.call.sequence, *record.group, describe(record.call));
  switch (record.state) {
    case State::issued: return fmt::format("issued {:.1f} s ago {}", age_s, what);
    case State::waiting: return fmt::format("waits since {:.1f} s in {}", age_s, what);
    case State::done: break;
  }
  return fmt::format("finished {:.1f} s ago {}", age_s, what);
}

std::string FlightRecorder::summary() const {
  std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  const Record* last_done = nullptr;
  for (const Record& record : ring_) {
    if (record.state == State::waiting) return line(record, now);
    if (record.state == State::done && (last_done == nullptr || last_done->since < record.since)) last_done = &record;
  }
  if (last_done == nullptr) return "is not in communication and finished none so far";
  return "is not in communication; " + line(*last_done, now);
}

std::string FlightRecorder::dump() const {
  std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  std::string text;
  for (uint64_t i = num_records_ - ring_.size(); i < num_records_; ++i) {
    text += fmt::format("    {}\n", line(ring_[i % kNumRecords], now));
  }
  return text;
}

std::vector<Traffic> FlightRecorder::traffic() const {
  std::lock_guard lock(mutex_);
  std::map<std::pair<std::string, std::string>, Traffic> by_name;
  for (const auto& [key, value] : traffic_) {
    Traffic& sum = by_name[{*key.first, key.second}];
    sum.group = *key.first;
    sum.operation = key.second;
    sum.num_calls += value.num_calls;
    sum.payload_bytes += value.payload_bytes;
    sum.sent_bytes += value.sent_bytes;
    sum.num_steps += value.num_steps;
  }
  std::vector<Traffic> all;
  for (auto& [key, value] : by_name) all.push_back(std::move(value));
  return all;
}

}  // namespace penteract::comm
