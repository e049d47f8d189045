// Calls in flight: what the collectives are made of, above any transport. Constructing one publishes it, wait() moves
// the bytes. Thread-safety: the calling rank's thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "penteract/comm/group_state.h"
#include "penteract/comm/reduce.h"

namespace penteract::comm {

// A call with its flight record.
class Pending {
 public:
  Pending(std::shared_ptr<const GroupState> group, const Call& call);
  virtual ~Pending() = default;
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  void wait();
  virtual bool ready() const = 0;

 protected:
  virtual void complete() = 0;
  const GroupState& group() const { return *group_; }
  const Call& call() const { return call_; }
  // Ends the world when a member sent another size than this rank expects of it.
  void check_sizes(std::span<const Bytes> views, const std::vector<size_t>& expected) const;

 private:
  std::shared_ptr<const GroupState> group_;
  Call call_;
  uint64_t record_;
};

// Every member's range for this rank is copied to its place; a place that is the range itself is left alone.
// `inputs` and `outputs` own the memory of the ranges and places. Fake: the places of others become zeros.
class CopyCall : public Pending {
 public:
  CopyCall(std::shared_ptr<const GroupState> group, const Call& call, std::vector<Bytes> to_members,
           std::vector<MutableBytes> places, at::Tensor inputs, at::Tensor outputs);
  bool ready() const override { return exchange_->ready(); }

 private:
  void complete() override;
  std::vector<MutableBytes> places_;
  Bytes own_;
  at::Tensor inputs_, outputs_;
  std::unique_ptr<Exchange> exchange_;
};

// The members' ranges for this rank are reduced into `out`, in member order. `out` may be this rank's own range, or
// overlap any where the ranges are copied when published. Fake: `out` becomes zeros, unless it is the own range.
class ReduceCall : public Pending {
 public:
  ReduceCall(std::shared_ptr<const GroupState> group, const Call& call, ReduceOp op, std::vector<Bytes> to_members,
             MutableBytes out, at::Tensor inputs, at::Tensor outputs);
  bool ready() const override { return exchange_->ready(); }

 private:
  void complete() override;
  ReduceOp op_;
  MutableBytes out_;
  const std::byte* own_;
  at::Tensor inputs_, outputs_;
  std::unique_ptr<Exchange> exchange_;
};

// In place, larger than kDirectReduceBytes: each member reduces its slice, then all gather the slices. Takes two
// sequence numbers, call.sequence and the next.
class AllReduceCall : public Pending {
 public:
  AllReduceCall(std::shared_ptr<const GroupState> group, const Call& call, ReduceOp op, at::Tensor t);
  bool ready() const override { return scatter_->ready(); }

 private:
  void complete() override;
  MutableBytes slice(int index) const;
  ReduceOp op_;
  at::Tensor t_;
  std::unique_ptr<Exchange> scatter_;
};

class TransferCall : public Pending {
 public:
  TransferCall(std::shared_ptr<const GroupState> group, const Call& call, at::Tensor t, bool is_send, int peer_index,
               uint64_t channel);
  bool ready() const override { return transfer_->ready(); }

 private:
  void complete() override { transfer_->finish(); }
  at::Tensor t_;
  std::unique_ptr<Transfer> transfer_;
};

// The bytes of a contiguous tensor, on the host or on a device.
MutableBytes bytes_of(const at::Tensor& t);
// Part i of n of `whole`, cut at multiples of `unit_bytes`; parts differ by one unit at most.
MutableBytes part_of(MutableBytes whole, size_t unit_bytes, int i, int n);

}  // namespace penteract::comm
