// Safetensors files: 8 bytes little-endian N, N bytes of JSON, the tensors' bytes without holes.
// (github.com/huggingface/safetensors, "Format".) The reader takes every file as hostile.
// Thread-safety: a SafetensorsFile may be read from several threads; a SafetensorsWriter is one thread's.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "penteract/base/file.h"
#include "penteract/base/result.h"
#include "penteract/checkpoint/dtype.h"
#include "penteract/topology/slice.h"

namespace penteract::checkpoint {

// The bound that the format's own library sets.
inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct TensorSpec {
  std::string name;
  Dtype dtype;
  std::vector<int64_t> shape;
};

struct TensorEntry {
  std::string name;
  Dtype dtype;
  std::vector<int64_t> shape;
  uint64_t offset_bytes = 0;  // from the start of the file
  uint64_t size_bytes = 0;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
};

// Reads the JSON of a header. header_bytes = 8 + N; data_bytes = the rest of the file, which the tensors must fill
// exactly: no hole, no overlap. Errors: file_malformed naming the file and the tensor.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, uint64_t header_bytes, uint64_t data_bytes,
                                                   const std::string& culprit);

// The first bytes of a file: N and the JSON, padded with spaces to a multiple of 64.
std::string make_safetensors_header(const std::vector<TensorSpec>& tensors,
                                    const std::map<std::string, std::string>& metadata);

class SafetensorsFile {
 public:
  // Errors: file_missing, file_unreadable, file_malformed.
  static Result<SafetensorsFile> open(const std::string& path);

  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const TensorEntry* find(std::string_view name) const;  // null when absent
  uint64_t header_bytes() const { return header_bytes_; }
  const FileReader& file() const { return file_; }

  // The whole tensor in its stored dtype. Errors: storage_read, file_malformed.
  Result<at::Tensor> read(const TensorEntry& entry) const;
  // A slice of it into `out` (contiguous, the slice's elements), cast to out's dtype.
  // REQUIRES: the slice lies inside the tensor.
  Status read(const TensorEntry& entry, const topology::Slice& slice, const at::Tensor& out) const;

 private:
  SafetensorsFile(FileReader file, SafetensorsHeader header, uint64_t header_bytes);
  FileReader file_;
  SafetensorsHeader header_;
  uint64_t header_bytes_;
  std::map<std::string, size_t, std::less<>> index_;
};

// Writes a file front to back: the header from the shapes, then each tensor's bytes in the order of `tensors`.
// REQUIRES: distinct names; element sizes that do not grow along `tensors`, which aligns every tensor.
class SafetensorsWriter {
 public:
  static Result<SafetensorsWriter> create(const std::string& path, std::vector<TensorSpec> tensors,
                                          const std::map<std::string, std::string>& metadata);
  // The bytes of the next tensor, whole. Errors: storage_write, storage_full.
  Status append(const at::Tensor& tensor);
  Status append(const void* data, size_t size_bytes);
  Status close();  // syncs. REQUIRES: every tensor was appended
  uint64_t offset_bytes() const { return file_.offset_bytes(); }
  uint64_t header_bytes() const { return header_bytes_; }
  const std::string& header_checksum() const { return header_checksum_; }  // XXH3-128 of those bytes

 private:
  SafetensorsWriter(FileWriter file, std::vector<TensorSpec> tensors, const std::string& header);
  FileWriter file_;
  std::vector<TensorSpec> tensors_;
  uint64_t header_bytes_;
  std::string header_checksum_;
  size_t next_ = 0;
};

}  // namespace penteract::checkpoint
