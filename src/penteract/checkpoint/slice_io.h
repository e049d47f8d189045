// Reads a part of a tensor slice that lies row-major in a file, into a slice in memory, casting on the way.
// Thread-safety: several threads may read one file.
#pragma once

#include "penteract/base/file.h"
#include "penteract/base/hash.h"
#include "penteract/checkpoint/dtype.h"
#include "penteract/topology/slice.h"

namespace penteract::checkpoint {

struct StoredBox {
  Dtype dtype;
  topology::Slice slice;  // in global coordinates
  uint64_t offset_bytes;  // of its first element in the file
};

// Copies `part`, which lies inside box.slice and inside `wanted`, into `out`: contiguous, the elements of `wanted`.
// Reads from the first to the last byte it needs, a small block at a time; with `hash`, the whole box, whose bytes it adds.
// Errors: storage_read, file_malformed (the file is too short; a BOOL that is neither 0 nor 1).
Status read_box(const FileReader& file, const StoredBox& box, const topology::Slice& part,
                const topology::Slice& wanted, const at::Tensor& out, Hasher128* hash = nullptr);

// Adds size_bytes of the file from offset_bytes to the hash, in pieces.
Status hash_range(const FileReader& file, uint64_t offset_bytes, uint64_t size_bytes, Hasher128& hash);

}  // namespace penteract::checkpoint
