#include "penteract/checkpoint/slice_io.h"

#include <algorithm>

#include "penteract/base/check.h"

namespace penteract::checkpoint {
namespace {

// Small enough to be hashed out of the cache.
constexpr uint64_t kChunkBytes = uint64_t{1} << 20;
// Below the 32,768 from which ATen shares a copy among threads: on a busy machine that waits more than it copies.
constexpr int64_t kBlockElements = 1 << 14;

std::vector<int64_t> strides_of(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// Elements of `outer`'s memory from the first to the last element of `inner`.
int64_t span_elements(const topology::Slice& outer, const topology::Slice& inner) {
  topology::Slice last = inner;
  for (int d = 0; d < inner.num_dims(); ++d) last.offset[d] += inner.size[d] - 1;
  return topology::flat_offset(outer, last) - topology::flat_offset(outer, inner) + 1;
}

// Cuts `part` along its outer dims until each block spans at most max_elements of `outer`. The blocks come in the order
// of their bytes and their spans do not overlap, so the file is read front to back with a small buffer.
void cut_into_blocks(const topology::Slice& outer, const topology::Slice& part, int64_t max_elements,
                     std::vector<topology::Slice>& blocks) {
  int d = 0;
  while (d < part.num_dims() && part.size[d] == 1) ++d;
  const int64_t span = span_elements(outer, part);
  if (d == part.num_dims() || span <= max_elements) {
    blocks.push_back(part);
    return;
  }
  const int64_t rows = std::max<int64_t>(1, max_elements / ((span + part.size[d] - 1) / part.size[d]));
  for (int64_t done = 0; done < part.size[d]; done += rows) {
    topology::Slice block = part;
    block.offset[d] += done;
    block.size[d] = std::min(rows, part.size[d] - done);
    cut_into_blocks(outer, block, max_elements, blocks);
  }
}

bool all_bools(const char* bytes, int64_t count) {
  return std::all_of(bytes, bytes + count, [](char c) { return c == 0 || c == 1; });
}

}  // namespace

Status hash_range(const FileReader& file, uint64_t offset_bytes, uint64_t size_bytes, Hasher128& hash) {
  std::string buffer(std::min(kChunkBytes, size_bytes), '\0');
  for (uint64_t done = 0; done < size_bytes;) {
    const uint64_t n = std::min<uint64_t>(buffer.size(), size_bytes - done);
    PENT_TRY(file.read_at(offset_bytes + done, buffer.data(), n));
    hash.update(buffer.data(), n);
    done += n;
  }
  return {};
}

Status read_box(const FileReader& file, const StoredBox& box, const topology::Slice& part,
                const topology::Slice& wanted, const at::Tensor& out, Hasher128* hash) {
  PENT_CHECK(out.is_contiguous() && out.device().is_cpu() && out.numel() == wanted.num_elements(),
             "{} elements for the slice {}", out.numel(), wanted.to_string());
  if (part.num_elements() == 0) return {};
  const auto item = static_cast<uint64_t>(dtype_bytes(box.dtype));
  std::vector<topology::Slice> blocks;
  cut_into_blocks(box.slice, part, kBlockElements, blocks);
  const std::vector<int64_t> strides = strides_of(box.slice.size);
  const at::Tensor out_view = out.view(wanted.size);
  at::Tensor buffer;
  uint64_t at = box.offset_bytes;  // up to here the file was hashed
  for (const topology::Slice& block : blocks) {
    const int64_t count = span_elements(box.slice, block);
    const uint64_t first = box.offset_bytes + static_cast<uint64_t>(topology::flat_offset(box.slice, block)) * item;
    const uint64_t size = static_cast<uint64_t>(count) * item;
    if (!buffer.defined() || buffer.numel() < count) {
      buffer = at::empty({count}, at::TensorOptions(scalar_type(box.dtype)));
    }
    auto* bytes = static_cast<char*>(buffer.mutable_data_ptr());
    if (hash != nullptr) PENT_TRY(hash_range(file, at, first - at, *hash));
    PENT_TRY(file.read_at(first, bytes, size));
    if (hash != nullptr) hash->update(bytes, size);
    at = first + size;
    if (box.dtype == Dtype::boolean && !all_bools(bytes, count)) {
      return Error{ErrorCode::file_malformed, "a BOOL is neither 0 nor 1", file.path(), "the file is damaged"};
    }
    at::Tensor to = out_view;
    for (int d = 0; d < block.num_dims(); ++d) to = to.narrow(d, block.offset[d] - wanted.offset[d], block.size[d]);
    to.copy_(buffer.as_strided(block.size, strides));
  }
  const uint64_t end = box.offset_bytes + static_cast<uint64_t>(box.slice.num_elements()) * item;
  return hash != nullptr ? hash_range(file, at, end - at, *hash) : Status();
}

}  // namespace penteract::checkpoint
