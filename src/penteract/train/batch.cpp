#include "penteract/train/batch.h"

#include <ATen/ops/empty.h>

#include "penteract/base/check.h"
#include "penteract/topology/sequence.h"

namespace penteract::train {

std::vector<model::MicroBatch> make_micro_batches(const BatchShape& shape, const topology::Layout& layout,
                                                  const topology::Coord& coord, const RowReader& read) {
  topology::Layout gathered = layout;
  gathered.sp = false;
  const auto positions = topology::local_positions(gathered, coord.cp, coord.tp, shape.padded);
  const auto own_positions = topology::local_positions(layout, coord.cp, coord.tp, shape.padded);
  const int64_t rows = shape.micro_rows;
  PENT_CHECK_EQ(shape.global_rows % (rows * layout.dp), 0);

  std::vector<std::vector<int32_t>> tokens(rows, std::vector<int32_t>(shape.seq_length + 1));
  std::vector<model::MicroBatch> batches(shape.global_rows / (rows * layout.dp));
  for (size_t m = 0; m < batches.size(); ++m) {
    model::MicroBatch& batch = batches[m];
    batch.rows = rows;
    batch.ids = at::empty({static_cast<int64_t>(positions.size()) * rows}, at::kLong);
    batch.targets = at::empty_like(batch.ids);
    batch.valid = at::empty({static_cast<int64_t>(own_positions.size()) * rows}, at::kBool);
    auto* ids = batch.ids.data_ptr<int64_t>();
    auto* targets = batch.targets.data_ptr<int64_t>();
    auto* valid = batch.valid.data_ptr<bool>();
    for (int64_t b = 0; b < rows; ++b) {
      const bool present = read((static_cast<int64_t>(m) * layout.dp + coord.dp) * rows + b, tokens[b].data());
      auto real = [&](int64_t position) { return present && position < shape.seq_length; };
      for (size_t i = 0; i < positions.size(); ++i) {
        const int64_t p = positions[i];
        ids[static_cast<int64_t>(i) * rows + b] = real(p) ? tokens[b][p] : 0;
        targets[static_cast<int64_t>(i) * rows + b] = real(p) ? tokens[b][p + 1] : -1;
      }
      for (size_t i = 0; i < own_positions.size(); ++i)
        valid[static_cast<int64_t>(i) * rows + b] = real(own_positions[i]);
    }
  }
  return batches;
}

int64_t count_targets(const std::vector<model::MicroBatch>& batches) {
  int64_t count = 0;
  for (const auto& batch : batches) {
    const auto* targets = batch.targets.data_ptr<int64_t>();
    for (int64_t i = 0; i < batch.targets.numel(); ++i) count += targets[i] >= 0;
  }
  return count;
}

}  // namespace penteract::train
