#include "penteract/comm/group.h"

#include <ATen/ops/empty.h>

#include <exception>
#include <numeric>

#include "penteract/base/check.h"
#include "penteract/comm/collectives.h"
#include "penteract/comm/device.h"

namespace penteract::comm {
namespace {

using topology::Collective;
using StatePtr = std::shared_ptr<const GroupState>;

Call make_call(const GroupState& group, const char* operation, const at::Tensor& t, int64_t agreed,
               topology::CollectiveCost cost, const Options& options, uint64_t num_sequences = 1) {
  Call call;
  call.operation = operation;
  call.tag = options.tag;
  call.dtype = t.scalar_type();
  call.num_dims = static_cast<int>(t.dim());
  for (size_t d = 0; d < call.shape.size() && static_cast<int64_t>(d) < t.dim(); ++d) call.shape[d] = t.size(d);
  call.payload_bytes = static_cast<int64_t>(t.nbytes());
  call.agreed = agreed;
  call.cost = cost;
  call.deadline = options.deadline.value_or(group.world->options().deadline);
  call.device = t.is_cpu() ? nullptr : group.world->device_end(group.rank());
  PENT_CHECK(t.is_cpu() || (call.device != nullptr && call.device->device() == t.device()),
             "a tensor on {} in a call of rank {}", t.device().str(), group.rank());
  call.sequence = group.counters().next_sequence;
  group.counters().next_sequence += num_sequences;
  return call;
}

topology::CollectiveCost cost_of(Collective op, const GroupState& group, const at::Tensor& t) {
  return topology::collective_cost(op, group.size(), static_cast<int64_t>(t.nbytes()));
}

// Like `in` with another dim 0.
at::Tensor new_rows(const at::Tensor& in, int64_t num_rows) {
  std::vector<int64_t> sizes = in.sizes().vec();
  sizes[0] = num_rows;
  return at::empty(sizes, in.options().requires_grad(false));
}

int64_t row_bytes(const at::Tensor& in) {
  int64_t bytes = static_cast<int64_t>(in.element_size());
  for (int64_t d = 1; d < in.dim(); ++d) bytes *= in.size(d);
  return bytes;
}

// The parts of a contiguous tensor that hold rows[i] rows each, one after another.
std::vector<MutableBytes> row_parts(const at::Tensor& t, const std::vector<int64_t>& rows, int num_members) {
  PENT_CHECK_EQ(rows.size(), static_cast<size_t>(num_members));
  PENT_CHECK_EQ(std::accumulate(rows.begin(), rows.end(), int64_t{0}), t.size(0));
  const int64_t bytes_a_row = row_bytes(t);
  std::byte* at = bytes_of(t).data;
  std::vector<MutableBytes> parts;
  for (int64_t num_rows : rows) {
    PENT_CHECK_GE(num_rows, 0);
    const size_t size = static_cast<size_t>(num_rows * bytes_a_row);
    parts.push_back({at, size});
    at += size;
  }
  return parts;
}

std::vector<MutableBytes> equal_parts(const at::Tensor& t, int num_members) {
  std::vector<MutableBytes> parts;
  for (int i = 0; i < num_members; ++i) parts.push_back(part_of(bytes_of(t), t.element_size(), i, num_members));
  return parts;
}

std::vector<Bytes> readable(const std::vector<MutableBytes>& parts) {
  std::vector<Bytes> bytes;
  for (const MutableBytes& part : parts) bytes.push_back({part.data, part.size});
  return bytes;
}

std::vector<Bytes> to_all(const at::Tensor& t, int num_members) {
  const MutableBytes bytes = bytes_of(t);
  return std::vector<Bytes>(num_members, Bytes{bytes.data, bytes.size});
}

// What leaves this rank when member i gets parts[i].
topology::CollectiveCost parts_cost(const GroupState& group, const std::vector<Bytes>& parts) {
  int64_t bytes = 0;
  for (int i = 0; i < group.size(); ++i) bytes += i == group.index ? 0 : static_cast<int64_t>(parts[i].size);
  return topology::exchange_cost(group.size(), bytes);
}

bool overlap(const MutableBytes& a, const MutableBytes& b) {
  return a.size > 0 && b.size > 0 && a.data < b.data + b.size && b.data < a.data + a.size;
}

std::unique_ptr<Pending> start_all_reduce(const StatePtr& group, const char* operation, ReduceOp op, at::Tensor t,
                                          const Options& options) {
  PENT_CHECK(t.is_contiguous() && reducible(t.scalar_type()), "{} of {}", operation, c10::toString(t.scalar_type()));
  const auto cost = cost_of(Collective::all_reduce, *group, t);
  if (static_cast<int64_t>(t.nbytes()) <= topology::kDirectReduceBytes) {
    const Call call = make_call(*group, operation, t, t.numel(), cost, options);
    // Host memory this small is copied when it is published; on a device the copy is made here.
    const at::Tensor published = t.is_cpu() ? t : t.clone();
    return std::make_unique<ReduceCall>(group, call, op, to_all(published, group->size()), bytes_of(t), published, t);
  }
  const Call call = make_call(*group, operation, t, t.numel(), cost, options, 2);
  return std::make_unique<AllReduceCall>(group, call, op, std::move(t));
}

std::unique_ptr<Pending> start_reduce_scatter(const StatePtr& group, const at::Tensor& in, at::Tensor out,
                                              const Options& options) {
  const int n = group->size();
  PENT_CHECK(in.is_contiguous() && out.is_contiguous() && in.scalar_type() == out.scalar_type() &&
             reducible(in.scalar_type()));
  PENT_CHECK_EQ(in.numel(), n * out.numel());
  const std::vector<MutableBytes> parts = equal_parts(in, n);
  PENT_CHECK(out.data_ptr() == parts[group->index].data || !overlap(bytes_of(in), bytes_of(out)));
  const Call call =
      make_call(*group, "reduce_scatter_sum", in, in.numel(), cost_of(Collective::reduce_scatter, *group, in), options);
  return std::make_unique<ReduceCall>(group, call, ReduceOp::sum, readable(parts), bytes_of(out), in, std::move(out));
}

std::unique_ptr<Pending> start_all_gather(const StatePtr& group, const at::Tensor& in, at::Tensor out,
                                          const Options& options) {
  const int n = group->size();
  PENT_CHECK(in.is_contiguous() && out.is_contiguous() && in.scalar_type() == out.scalar_type());
  PENT_CHECK_EQ(in.numel() * n, out.numel());
  const std::vector<MutableBytes> parts = equal_parts(out, n);
  PENT_CHECK(in.data_ptr() == parts[group->index].data || !overlap(bytes_of(in), bytes_of(out)));
  const Call call =
      make_call(*group, "all_gather", in, in.numel(), cost_of(Collective::all_gather, *group, out), options);
  auto pending = std::make_unique<CopyCall>(group, call, to_all(in, n), parts, in, std::move(out));
  return pending;
}

void copy_flat(const at::Tensor& in, const at::Tensor& out) {
  PENT_CHECK(in.scalar_type() == out.scalar_type());
  PENT_CHECK_EQ(in.numel(), out.numel());
  if (in.data_ptr() != out.data_ptr()) out.view({-1}).copy_(in.view({-1}));
}

}  // namespace

Handle::Handle() = default;
Handle::Handle(std::unique_ptr<Pending> pending) : pending_(std::move(pending)) {}
Handle::Handle(Handle&&) noexcept = default;
Handle& Handle::operator=(Handle&& other) noexcept {
  Handle before(std::move(*this));
  pending_ = std::move(other.pending_);
  return *this;
}
Handle::~Handle() {
  if (!pending_ || std::uncaught_exceptions() > 0) return;
  try {
    wait();
  } catch (...) {
    // The world has ended and keeps the cause; the rank's next call throws.
  }
}
void Handle::wait() {
  if (!pending_) return;
  std::unique_ptr<Pending> pending = std::move(pending_);
  pending->wait();
}
bool Handle::done() const { return !pending_ || pending_->ready(); }

const GroupState& Group::state() const {
  PENT_CHECK(state_ != nullptr, "this rank has no such group");
  return *state_;
}
int Group::size() const { return state().size(); }
int Group::index() const { return state().index; }
int Group::rank(int index) const { return state().ranks.at(index); }
const std::vector<int>& Group::ranks() const { return state().ranks; }
const std::string& Group::name() const { return *state().name; }

void Group::all_reduce_sum(at::Tensor& t, Options options) const {
  if (size() > 1) start_all_reduce(state_, "all_reduce_sum", ReduceOp::sum, t, options)->wait();
}

void Group::all_reduce_max(at::Tensor& t, Options options) const {
  if (size() > 1) start_all_reduce(state_, "all_reduce_max", ReduceOp::max, t, options)->wait();
}

Handle Group::all_reduce_sum_async(at::Tensor t, Options options) const {
  if (size() == 1) return {};
  return Handle(start_all_reduce(state_, "all_reduce_sum", ReduceOp::sum, std::move(t), options));
}

at::Tensor Group::reduce_scatter_sum(const at::Tensor& in, Options options) const {
  if (size() == 1) return in;
  PENT_CHECK(in.dim() >= 1 && in.size(0) % size() == 0, "dim 0 does not divide by {} members", size());
  at::Tensor out = new_rows(in, in.size(0) / size());
  start_reduce_scatter(state_, in.contiguous(), out, options)->wait();
  return out;
}

at::Tensor Group::all_gather(const at::Tensor& in, Options options) const {
  if (size() == 1) return in;
  PENT_CHECK_GE(in.dim(), 1);
  at::Tensor out = new_rows(in, in.size(0) * size());
  start_all_gather(state_, in.contiguous(), out, options)->wait();
  return out;
}

void Group::reduce_scatter_into(const at::Tensor& in, at::Tensor out, Options options) const {
  if (size() == 1) return copy_flat(in, out);
  start_reduce_scatter(state_, in, std::move(out), options)->wait();
}

void Group::all_gather_into(const at::Tensor& in, at::Tensor out, Options options) const {
  if (size() == 1) return copy_flat(in, out);
  start_all_gather(state_, in, std::move(out), options)->wait();
}

Handle Group::reduce_scatter_into_async(const at::Tensor& in, at::Tensor out, Options options) const {
  if (size() == 1) return copy_flat(in, out), Handle();
  return Handle(start_reduce_scatter(state_, in, std::move(out), options));
}

Handle Group::all_gather_into_async(const at::Tensor& in, at::Tensor out, Options options) const {
  if (size() == 1) return copy_flat(in, out), Handle();
  return Handle(start_all_gather(state_, in, std::move(out), options));
}

at::Tensor Group::all_gather_v(const at::Tensor& in_any, const std::vector<int64_t>& rows, Options options) const {
  const GroupState& group = state();
  PENT_CHECK(in_any.dim() >= 1 && rows.size() == group.ranks.size());
  PENT_CHECK_EQ(in_any.size(0), rows[group.index]);
  if (size() == 1) return in_any;
  const at::Tensor in = in_any.contiguous();
  at::Tensor out = new_rows(in, std::accumulate(rows.begin(), rows.end(), int64_t{0}));
  std::vector<Bytes> sent = to_all(in, size());
  const Call call = make_call(group, "all_gather_v", in, row_bytes(in), parts_cost(group, sent), options);
  CopyCall(state_, call, std::move(sent), row_parts(out, rows, size()), in, out).wait();
  return out;
}

at::Tensor Group::reduce_scatter_v(const at::Tensor& in_any, const std::vector<int64_t>& rows, Options options) const {
  const GroupState& group = state();
  PENT_CHECK(in_any.dim() >= 1 && rows.size() == group.ranks.size() && reducible(in_any.scalar_type()));
  if (size() == 1) return in_any;
  const at::Tensor in = in_any.contiguous();
  at::Tensor out = new_rows(in, rows[group.index]);
  std::vector<Bytes> sent = readable(row_parts(in, rows, size()));
  const Call call = make_call(group, "reduce_scatter_v", in, in.numel(), parts_cost(group, sent), options);
  ReduceCall(state_, call, ReduceOp::sum, std::move(sent), bytes_of(out), in, out).wait();
  return out;
}

at::Tensor Group::all_to_all_v(const at::Tensor& in_any, const std::vector<int64_t>& send_rows,
                               const std::vector<int64_t>& recv_rows, Options options) const {
  const GroupState& group = state();
  PENT_CHECK(in_any.dim() >= 1 && send_rows.size() == group.ranks.size() && recv_rows.size() == group.ranks.size());
  if (size() == 1) {
    PENT_CHECK(send_rows[0] == in_any.size(0) && recv_rows[0] == send_rows[0]);
    return in_any;
  }
  const at::Tensor in = in_any.contiguous();
  at::Tensor out = new_rows(in, std::accumulate(recv_rows.begin(), recv_rows.end(), int64_t{0}));
  std::vector<Bytes> sent = readable(row_parts(in, send_rows, size()));
  const Call call = make_call(group, "all_to_all_v", in, row_bytes(in), parts_cost(group, sent), options);
  CopyCall(state_, call, std::move(sent), row_parts(out, recv_rows, size()), in, out).wait();
  return out;
}

std::vector<int64_t> Group::all_gather_int64(const std::vector<int64_t>& mine, Options options) const {
  if (size() == 1) return mine;
  const GroupState& group = state();
  const int64_t count = static_cast<int64_t>(mine.size());
  at::Tensor out = at::empty({size(), count}, at::kLong);
  int64_t* numbers = out.data_ptr<int64_t>();
  std::copy(mine.begin(), mine.end(), numbers + count * group.index);
  start_all_gather(state_, out[group.index], out, options)->wait();
  if (group.world->is_fake()) {
    for (int i = 0; i < size(); ++i) std::copy(mine.begin(), mine.end(), numbers + count * i);
  }
  return std::vector<int64_t>(numbers, numbers + out.numel());
}

bool Group::agree_any(bool mine, Options options) const {
  for (int64_t flag : all_gather_int64({mine ? 1 : 0}, options)) {
    if (flag != 0) return true;
  }
  return false;
}

void Group::broadcast(at::Tensor& t, int root_index, Options options) const {
  PENT_CHECK(root_index >= 0 && root_index < size() && t.is_contiguous());
  if (size() == 1) return;
  const GroupState& group = state();
  const bool is_root = root_index == group.index;
  const auto cost = is_root ? cost_of(Collective::broadcast, group, t) : topology::CollectiveCost{};
  const Call call = make_call(group, "broadcast", t, root_index, cost, options);
  std::vector<MutableBytes> places(size());
  places[root_index] = bytes_of(t);
  // The root's own view may be a copy of t, which stands already.
  std::vector<Bytes> sent = is_root ? to_all(t, size()) : std::vector<Bytes>(size());
  CopyCall(state_, call, std::move(sent), std::move(places), t, t).wait();
}

void Group::barrier(Options options) const {
  if (size() == 1) return;
  const GroupState& group = state();
  const at::Tensor nothing = at::empty({0}, at::kByte);
  const Call call = make_call(group, "barrier", nothing, 0, cost_of(Collective::barrier, group, nothing), options);
  CopyCall(state_, call, std::vector<Bytes>(size()), std::vector<MutableBytes>(size()), nothing, nothing).wait();
}

Handle Group::send(at::Tensor t, int to_index, uint64_t channel, Options options) const {
  const GroupState& group = state();
  PENT_CHECK(to_index >= 0 && to_index < size() && t.is_contiguous());
  Call call = make_call(group, "send", t, t.numel(), cost_of(Collective::send, group, t), options, 0);
  call.sequence = group.counters().next_sent[{to_index, channel}]++;
  return Handle(std::make_unique<TransferCall>(state_, call, std::move(t), true, to_index, channel));
}

Handle Group::recv_into(at::Tensor t, int from_index, uint64_t channel, Options options) const {
  const GroupState& group = state();
  PENT_CHECK(from_index >= 0 && from_index < size() && t.is_contiguous());
  Call call = make_call(group, "receive", t, t.numel(), {}, options, 0);
  call.sequence = group.counters().next_received[{from_index, channel}]++;
  return Handle(std::make_unique<TransferCall>(state_, call, std::move(t), false, from_index, channel));
}

}  // namespace penteract::comm
