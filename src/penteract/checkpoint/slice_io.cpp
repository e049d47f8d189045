#include "penteract/checkpoint/slice_io.h"

#include <algorithm>

#include "penteract/base/check.h"

namespace penteract::checkpoint {
namespace {

// Small enough to be hashed out of the cache.
constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

Status read_range(const FileReader& file, uint64_t offset_bytes, uint64_t size_bytes, char* out, Hasher128* hash) {
  if (hash == nullptr) return file.read_at(offset_bytes, out, size_bytes);
  for (uint64_t done = 0; done < size_bytes;) {
    const uint64_t n = std::min(kChunkBytes, size_bytes - done);
    PENT_TRY(file.read_at(offset_bytes + done, out + done, n));
    hash->update(out + done, n);
    done += n;
  }
  return {};
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
  const int dims = part.num_dims();
  const auto item = static_cast<uint64_t>(dtype_bytes(box.dtype));
  topology::Slice last = part;
  for (int d = 0; d < dims; ++d) last.offset[d] += part.size[d] - 1;
  const int64_t first = topology::flat_offset(box.slice, part);
  const int64_t count = topology::flat_offset(box.slice, last) - first + 1;
  at::Tensor span = at::empty({count}, at::TensorOptions(scalar_type(box.dtype)));
  auto* bytes = static_cast<char*>(span.mutable_data_ptr());

  const uint64_t before = static_cast<uint64_t>(first) * item, size = static_cast<uint64_t>(count) * item;
  const uint64_t total = static_cast<uint64_t>(box.slice.num_elements()) * item;
  if (hash != nullptr) PENT_TRY(hash_range(file, box.offset_bytes, before, *hash));
  PENT_TRY(read_range(file, box.offset_bytes + before, size, bytes, hash));
  if (hash != nullptr) PENT_TRY(hash_range(file, box.offset_bytes + before + size, total - before - size, *hash));
  if (box.dtype == Dtype::boolean && !all_bools(bytes, count)) {
    return Error{ErrorCode::file_malformed, "a BOOL is neither 0 nor 1", file.path(), "the file is damaged"};
  }

  std::vector<int64_t> strides(dims, 1);
  for (int d = dims - 2; d >= 0; --d) strides[d] = strides[d + 1] * box.slice.size[d + 1];
  at::Tensor to = out.view(wanted.size);
  for (int d = 0; d < dims; ++d) to = to.narrow(d, part.offset[d] - wanted.offset[d], part.size[d]);
  to.copy_(span.as_strided(part.size, strides));
  return {};
}

}  // namespace penteract::checkpoint
