#include "penteract/parallel/context_attention.h"

#include <ATen/ops/cat.h>

#include "penteract/ops/attention.h"
#include "penteract/ops/op.h"
#include "penteract/topology/sequence.h"

namespace penteract::parallel {
namespace {

// Blocks of this rank's queries against keys in sequence order.
std::vector<ops::AttentionBlock> causal_blocks(int cp, int cp_rank, int64_t length) {
  std::vector<ops::AttentionBlock> blocks;
  int64_t query = 0;
  for (const auto& range : topology::context_ranges(cp, cp_rank, length)) {
    if (range.first > 0) blocks.push_back({query, range.count, 0, range.first, false});
    blocks.push_back({query, range.count, range.first, range.count, true});
    query += range.count;
  }
  return blocks;
}

// [cp·T, ...] in rank order to sequence order, or back.
at::Tensor reorder(const at::Tensor& x, int cp, bool to_sequence) {
  const int64_t segment = x.size(0) / (2 * cp);
  std::vector<at::Tensor> parts(2 * cp);
  int64_t place = 0;
  for (int r = 0; r < cp; ++r) {
    for (const auto& range : topology::context_ranges(cp, r, x.size(0))) {
      if (to_sequence) parts[range.first / segment] = x.narrow(0, place, segment);
      else parts[place / segment] = x.narrow(0, range.first, segment);
      place += segment;
    }
  }
  return at::cat(parts, 0);
}

class ContextAttention : public ops::Op {
 public:
  ContextAttention(comm::Group cp, double scale) : cp_(std::move(cp)), scale_(scale) {}
  const char* name() const override { return "context_attention"; }

  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool keep) {
    const at::Tensor keys = gather(k), values = gather(v);
    auto [out, lse] = ops::attention(q, keys, values, blocks(keys), scale_);
    if (keep) save(q), save(keys), save(values), save(out), save(lse);
    return out;
  }

  std::vector<at::Tensor> backward(std::vector<at::Tensor> grads) override {
    auto [dq, dk, dv] =
        ops::attention_backward(grads[0], saved(0), saved(1), saved(2), saved(3), saved(4), blocks(saved(1)), scale_);
    return {dq, scatter(dk), scatter(dv)};
  }

 private:
  std::vector<ops::AttentionBlock> blocks(const at::Tensor& keys) const {
    return causal_blocks(cp_.size(), cp_.index(), keys.size(0));
  }
  at::Tensor gather(const at::Tensor& x) const {
    if (cp_.size() == 1) return x;
    return reorder(cp_.all_gather(x.contiguous(), {.tag = "context parallel"}), cp_.size(), true);
  }
  at::Tensor scatter(const at::Tensor& dx) const {
    if (cp_.size() == 1) return dx;
    return cp_.reduce_scatter_sum(reorder(dx, cp_.size(), false), {.tag = "context parallel"});
  }

  comm::Group cp_;
  double scale_;
};

}  // namespace

at::Tensor context_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const comm::Group& cp,
                             double scale) {
  auto op = std::make_shared<ContextAttention>(cp, scale);
  return ops::record_one(op, {q, k, v}, [&](bool keep) { return op->forward(q, k, v, keep); });
}

}  // namespace penteract::parallel
