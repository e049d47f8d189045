// One group of ranks as seen by one of them: collectives, send and receive. An argument everywhere, never global.
// Thread-safety: a rank's own thread only (copies share one call order). Copying is cheap.
//
// Every call is COLLECTIVE (all members, same order, same operation, dtype and sizes) unless it says otherwise; members
// that differ get a CommError naming both. A group of one is a no-op at the entry. Sums run in group-rank order, so
// they have equal bits on every rank, transport and split; bf16 is summed in fp32 and rounded once.
// Throws CommError: another rank failed, a deadline passed, calls differ. Broken preconditions throw CheckFailure.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace penteract::comm {

struct GroupState;
class Pending;

struct Options {
  const char* tag = "";  // what the call is for, in reports; must outlive the world (a literal)
  std::optional<std::chrono::milliseconds> deadline = {};  // of each wait; the world's when absent
};

// A call in flight. It owns inputs and outputs until wait(): touch neither before. On the CPU the call is published at
// once and the bytes move inside wait(), in the waiting rank's thread. Handles of one group are waited for in the same
// order on all members. The destructor waits, or drops the call while an exception unwinds; it never throws.
class Handle {
 public:
  Handle();
  explicit Handle(std::unique_ptr<Pending> pending);
  Handle(Handle&&) noexcept;
  Handle& operator=(Handle&&) noexcept;
  ~Handle();
  void wait();        // no-op on an empty or finished handle
  bool done() const;  // wait() would not block on a peer that has yet to come

 private:
  std::unique_ptr<Pending> pending_;
};

class Group {
 public:
  Group() = default;  // no group: any call is a CheckFailure
  explicit Group(std::shared_ptr<const GroupState> state) : state_(std::move(state)) {}

  int size() const;
  int index() const;                      // this rank's position in the group
  int rank(int index) const;              // the world's rank of a member
  const std::vector<int>& ranks() const;  // ascending
  const std::string& name() const;

  // In place; t contiguous, of fp32, fp64, bf16 or int64. A NaN stays NaN in the maximum.
  void all_reduce_sum(at::Tensor& t, Options options = {}) const;
  void all_reduce_max(at::Tensor& t, Options options = {}) const;
  Handle all_reduce_sum_async(at::Tensor t, Options options = {}) const;

  // [n·k, ...] -> [k, ...]: the sum over members of this member's part of dim 0.
  at::Tensor reduce_scatter_sum(const at::Tensor& in, Options options = {}) const;
  // [k, ...] -> [n·k, ...] in member order. A group of one returns `in` itself.
  at::Tensor all_gather(const at::Tensor& in, Options options = {}) const;

  // Flat forms on contiguous buffers of one dtype: in.numel() = n · out.numel(), and the reverse. `out` of the first
  // may be this member's part of `in`, `in` of the second this member's part of `out`; else they do not overlap.
  void reduce_scatter_into(const at::Tensor& in, at::Tensor out, Options options = {}) const;
  void all_gather_into(const at::Tensor& in, at::Tensor out, Options options = {}) const;
  Handle reduce_scatter_into_async(const at::Tensor& in, at::Tensor out, Options options = {}) const;
  Handle all_gather_into_async(const at::Tensor& in, at::Tensor out, Options options = {}) const;

  // dim 0 in parts of rows[i] for member i; `rows` is equal on all members.
  at::Tensor all_gather_v(const at::Tensor& in, const std::vector<int64_t>& rows, Options options = {}) const;
  at::Tensor reduce_scatter_v(const at::Tensor& in, const std::vector<int64_t>& rows, Options options = {}) const;

  // Sends send_rows[i] rows of dim 0 to member i and returns the rows from all members in member order.
  // REQUIRES: recv_rows[i] here = send_rows[this member] there.
  at::Tensor all_to_all_v(const at::Tensor& in, const std::vector<int64_t>& send_rows,
                          const std::vector<int64_t>& recv_rows, Options options = {}) const;

  // Each member's numbers in member order; equal lengths. For counts and agreement.
  std::vector<int64_t> all_gather_int64(const std::vector<int64_t>& mine, Options options = {}) const;
  // True on all members when it is true on any: a stop flag that all see at the same step.
  bool agree_any(bool mine, Options options = {}) const;

  void broadcast(at::Tensor& t, int root_index, Options options = {}) const;  // t contiguous
  void barrier(Options options = {}) const;

  // Not collective. The k-th send to a member on a channel meets its k-th recv_into from here on that channel; equal
  // dtype and numel. Tensors contiguous. wait() of a send returns when the bytes were taken (small ones: at once).
  Handle send(at::Tensor t, int to_index, uint64_t channel, Options options = {}) const;
  Handle recv_into(at::Tensor t, int from_index, uint64_t channel, Options options = {}) const;

 private:
  const GroupState& state() const;
  std::shared_ptr<const GroupState> state_;
};

}  // namespace penteract::comm
