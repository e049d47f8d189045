#include "penteract/comm/collectives.h"

#include <cstring>

#include "penteract/base/check.h"
#include "penteract/comm/device.h"

namespace penteract::comm {
namespace {

std::vector<size_t> sizes_of(const std::vector<MutableBytes>& places) {
  std::vector<size_t> sizes;
  for (const MutableBytes& place : places) sizes.push_back(place.size);
  return sizes;
}

void copy_bytes(DeviceEnd* device, std::byte* to, const std::byte* from, size_t size) {
  if (device != nullptr) device->copy(to, from, size);
  else std::memcpy(to, from, size);
}

void reduce(DeviceEnd* device, ReduceOp op, at::ScalarType dtype, std::span<const Bytes> views, std::byte* out) {
  if (device != nullptr) device->reduce(op, dtype, views, out);
  else reduce_views(op, dtype, views, out);
}

// From the member after this one on, so that readers do not all start at the same member's memory.
void copy_views(DeviceEnd* device, std::span<const Bytes> views, const std::vector<MutableBytes>& places,
                int own_index) {
  const size_t n = places.size();
  for (size_t step = 1; step <= n; ++step) {
    const size_t i = (own_index + step) % n;
    if (places[i].size > 0 && places[i].data != views[i].data) {
      copy_bytes(device, places[i].data, views[i].data, places[i].size);
    }
  }
}

void set_zero(DeviceEnd* device, MutableBytes bytes) {
  if (bytes.size == 0) return;
  if (device != nullptr) device->set_zero(bytes.data, bytes.size);
  else std::memset(bytes.data, 0, bytes.size);
}

}  // namespace

MutableBytes bytes_of(const at::Tensor& t) {
  PENT_CHECK(t.is_contiguous());
  return {static_cast<std::byte*>(t.data_ptr()), static_cast<size_t>(t.nbytes())};
}

MutableBytes part_of(MutableBytes whole, size_t unit_bytes, int i, int n) {
  const size_t num_units = whole.size / unit_bytes;
  const size_t begin = num_units * i / n, end = num_units * (i + 1) / n;
  return {whole.data + begin * unit_bytes, (end - begin) * unit_bytes};
}

Pending::Pending(std::shared_ptr<const GroupState> group, const Call& call) : group_(std::move(group)), call_(call) {
  group_->world->check_alive();
  record_ = group_->world->recorder(group_->rank()).issued(call_, *group_->name);
}

void Pending::wait() {
  FlightRecorder& recorder = group_->world->recorder(group_->rank());
  recorder.waiting(record_);
  complete();
  if (call_.device != nullptr) call_.device->join();
  recorder.done(record_);
}

void Pending::check_sizes(std::span<const Bytes> views, const std::vector<size_t>& expected) const {
  for (size_t i = 0; i < views.size(); ++i) {
    if (views[i].size == expected[i]) continue;
    group_->world->fail(
        group_->rank(),
        Error{ErrorCode::comm_failed,
              fmt::format("#{} of group {}, {}: rank {} sends {} bytes to rank {}, which expects {}", call_.sequence,
                          *group_->name, describe(call_), group_->ranks[i], views[i].size, group_->rank(), expected[i]),
              "", "all ranks of a group make the same calls in the same order and sizes"});
  }
}

CopyCall::CopyCall(std::shared_ptr<const GroupState> state, const Call& call_made, std::vector<Bytes> to_members,
                   std::vector<MutableBytes> places, at::Tensor inputs, at::Tensor outputs)
    : Pending(std::move(state), call_made),
      places_(std::move(places)),
      own_(to_members[group().index]),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      exchange_(group().transport->exchange(call(), std::move(to_members), inputs_)) {}

void CopyCall::complete() {
  const std::span<const Bytes> views = exchange_->receive();
  if (views.empty()) {
    for (const MutableBytes& place : places_) {
      if (place.data != own_.data) set_zero(call().device, place);
    }
    const MutableBytes& own_place = places_[group().index];
    if (own_place.size > 0 && own_place.data != own_.data)
      copy_bytes(call().device, own_place.data, own_.data, own_place.size);
    return;
  }
  check_sizes(views, sizes_of(places_));
  copy_views(call().device, views, places_, group().index);
  exchange_->release();
  exchange_->finish();
}

ReduceCall::ReduceCall(std::shared_ptr<const GroupState> state, const Call& call_made, ReduceOp op,
                       std::vector<Bytes> to_members, MutableBytes out, at::Tensor inputs, at::Tensor outputs)
    : Pending(std::move(state), call_made),
      op_(op),
      out_(out),
      own_(to_members[group().index].data),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      exchange_(group().transport->exchange(call(), std::move(to_members), inputs_)) {}

void ReduceCall::complete() {
  const std::span<const Bytes> views = exchange_->receive();
  if (views.empty()) {
    if (out_.data != own_) set_zero(call().device, out_);
    return;
  }
  check_sizes(views, std::vector<size_t>(views.size(), out_.size));
  reduce(call().device, op_, call().dtype, views, out_.data);
  exchange_->release();
  exchange_->finish();
}

AllReduceCall::AllReduceCall(std::shared_ptr<const GroupState> state, const Call& call_made, ReduceOp op, at::Tensor t)
    : Pending(std::move(state), call_made), op_(op), t_(std::move(t)) {
  std::vector<Bytes> slices;
  for (int i = 0; i < group().size(); ++i) slices.push_back({slice(i).data, slice(i).size});
  scatter_ = group().transport->exchange(call(), std::move(slices), t_);
}

MutableBytes AllReduceCall::slice(int index) const {
  return part_of(bytes_of(t_), t_.element_size(), index, group().size());
}

void AllReduceCall::complete() {
  std::span<const Bytes> views = scatter_->receive();
  if (views.empty()) return;
  // Nobody else reads this rank's own slice of its t, so the sum goes there at once.
  const MutableBytes own = slice(group().index);
  check_sizes(views, std::vector<size_t>(views.size(), own.size));
  reduce(call().device, op_, call().dtype, views, own.data);
  scatter_->release();

  Call gather_call = call();
  gather_call.sequence += 1;
  std::unique_ptr<Exchange> gather =
      group().transport->exchange(gather_call, std::vector<Bytes>(group().size(), Bytes{own.data, own.size}), t_);
  views = gather->receive();
  // All have published their sums, hence read what they summed: the other slices may be overwritten.
  scatter_->finish();
  std::vector<MutableBytes> places;
  for (int i = 0; i < group().size(); ++i) places.push_back(slice(i));
  check_sizes(views, sizes_of(places));
  // The own view may be a copy of the own slice, which stands already.
  copy_views(call().device, views, places, group().index);
  gather->release();
  gather->finish();
}

TransferCall::TransferCall(std::shared_ptr<const GroupState> state, const Call& call_made, at::Tensor t, bool is_send,
                           int peer_index, uint64_t channel)
    : Pending(std::move(state), call_made), t_(std::move(t)) {
  const MutableBytes bytes = bytes_of(t_);
  Transport& transport = *group().transport;
  transfer_ = is_send ? transport.send(call(), peer_index, channel, {bytes.data, bytes.size}, t_)
                      : transport.receive(call(), peer_index, channel, bytes);
}

}  // namespace penteract::comm
