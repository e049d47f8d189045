#include "penteract/model/batch.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>

#include "penteract/base/check.h"
#include "penteract/topology/sequence.h"

namespace penteract::model {
namespace {

// The positions that all tp ranks of a context-parallel rank hold together.
std::vector<int64_t> gathered_positions(const BatchShape& shape, topology::Layout layout,
                                        const topology::Coord& coord) {
  layout.sp = false;
  return topology::local_positions(layout, coord.cp, coord.tp, shape.padded);
}

int64_t first_row(const BatchShape& shape, const topology::Layout& layout, const topology::Coord& coord,
                  int64_t micro_batch) {
  return (micro_batch * layout.dp + coord.dp) * shape.micro_rows;
}

}  // namespace

std::vector<MicroBatch> make_micro_batches(const BatchShape& shape, const topology::Layout& layout,
                                           const topology::Coord& coord, const RowReader& read) {
  const auto positions = gathered_positions(shape, layout, coord);
  const auto own_positions = topology::local_positions(layout, coord.cp, coord.tp, shape.padded);
  const int64_t rows = shape.micro_rows;
  PENT_CHECK_EQ(shape.global_rows % (rows * layout.dp), 0);

  Row row;
  std::vector<MicroBatch> batches(shape.global_rows / (rows * layout.dp));
  for (size_t m = 0; m < batches.size(); ++m) {
    MicroBatch& batch = batches[m];
    batch.index = static_cast<int>(m);
    batch.rows = rows;
    batch.ids = at::empty({static_cast<int64_t>(positions.size()) * rows}, at::kLong);
    batch.targets = at::empty_like(batch.ids);
    batch.valid = at::empty({static_cast<int64_t>(own_positions.size()) * rows}, at::kBool);
    auto* ids = batch.ids.data_ptr<int64_t>();
    auto* targets = batch.targets.data_ptr<int64_t>();
    auto* valid = batch.valid.data_ptr<bool>();
    for (int64_t b = 0; b < rows; ++b) {
      row.tokens.assign(shape.seq_length + 1, 0);
      row.is_target.assign(shape.seq_length, 1);
      const bool present = read(first_row(shape, layout, coord, static_cast<int64_t>(m)) + b, row);
      auto real = [&](int64_t position) { return present && position < shape.seq_length; };
      for (size_t i = 0; i < positions.size(); ++i) {
        const int64_t p = positions[i];
        ids[static_cast<int64_t>(i) * rows + b] = real(p) ? row.tokens[p] : 0;
        targets[static_cast<int64_t>(i) * rows + b] = real(p) && row.is_target[p] ? row.tokens[p + 1] : -1;
        batch.num_tokens += real(p);
      }
      for (size_t i = 0; i < own_positions.size(); ++i)
        valid[static_cast<int64_t>(i) * rows + b] = real(own_positions[i]);
    }
  }
  return batches;
}

int64_t count_targets(const std::vector<MicroBatch>& batches) {
  int64_t count = 0;
  for (const auto& batch : batches) {
    const auto* targets = batch.targets.data_ptr<int64_t>();
    for (int64_t i = 0; i < batch.targets.numel(); ++i) count += targets[i] >= 0;
  }
  return count;
}

int64_t count_tokens(const std::vector<MicroBatch>& batches) {
  int64_t count = 0;
  for (const auto& batch : batches) count += batch.num_tokens;
  return count;
}

TokenPlaces::TokenPlaces(const BatchShape& shape, const topology::Layout& layout, const topology::Coord& coord,
                         int64_t micro_batch, bool gathered)
    : seq_length_(shape.seq_length),
      first_row_(first_row(shape, layout, coord, micro_batch)),
      micro_rows_(shape.micro_rows),
      positions_(gathered ? gathered_positions(shape, layout, coord)
                          : topology::local_positions(layout, coord.cp, coord.tp, shape.padded)) {}

void TokenPlaces::for_each(int64_t rows, const std::function<void(int64_t, int64_t, int64_t)>& visit) const {
  for (size_t i = 0; i < positions_.size(); ++i) {
    if (positions_[i] >= seq_length_) continue;
    for (int64_t b = 0; b < micro_rows_ && first_row_ + b < rows; ++b)
      visit(static_cast<int64_t>(i) * micro_rows_ + b, first_row_ + b, positions_[i]);
  }
}

void TokenPlaces::to_global(const at::Tensor& local, at::Tensor global) const {
  PENT_CHECK(local.is_contiguous() && global.is_contiguous() && local.scalar_type() == global.scalar_type());
  PENT_CHECK_EQ(local.size(0), static_cast<int64_t>(positions_.size()) * micro_rows_);
  const int64_t bytes = local.nbytes() / std::max<int64_t>(1, local.size(0));
  for_each(global.size(0), [&](int64_t from, int64_t row, int64_t position) {
    std::memcpy(static_cast<char*>(global.data_ptr()) + (row * seq_length_ + position) * bytes,
                static_cast<const char*>(local.data_ptr()) + from * bytes, bytes);
  });
}

at::Tensor TokenPlaces::to_local(const at::Tensor& global) const {
  PENT_CHECK(global.is_contiguous() && global.dim() >= 2 && global.size(1) == seq_length_);
  std::vector<int64_t> shape = global.sizes().slice(1).vec();
  shape[0] = static_cast<int64_t>(positions_.size()) * micro_rows_;
  at::Tensor local = at::zeros(shape, global.options());
  const int64_t bytes = local.nbytes() / std::max<int64_t>(1, local.size(0));
  for_each(global.size(0), [&](int64_t to, int64_t row, int64_t position) {
    std::memcpy(static_cast<char*>(local.data_ptr()) + to * bytes,
                static_cast<const char*>(global.data_ptr()) + (row * seq_length_ + position) * bytes, bytes);
  });
  return local;
}

}  // namespace penteract::model
