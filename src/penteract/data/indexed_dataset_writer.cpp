// IndexedDatasetWriter of indexed_dataset.h.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <limits>

#include "penteract/base/check.h"
#include "penteract/data/indexed_dataset.h"

namespace penteract::data {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr size_t kMaxSequenceTokens = std::numeric_limits<int32_t>::max();

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string folder_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

Status move_into_place(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return errno_error(ErrorCode::storage_write, to, "rename into");
  return sync_directory(folder_of(to));
}

int64_t largest_of(TokenDtype dtype) {
  switch (dtype) {
    case TokenDtype::u8: return std::numeric_limits<uint8_t>::max();
    case TokenDtype::i8: return std::numeric_limits<int8_t>::max();
    case TokenDtype::i16: return std::numeric_limits<int16_t>::max();
    case TokenDtype::u16: return std::numeric_limits<uint16_t>::max();
    case TokenDtype::i32:
    case TokenDtype::i64: return std::numeric_limits<int32_t>::max();
  }
  PENT_CHECK(false, "dtype {}", static_cast<int>(dtype));
}

}  // namespace

// The suffix goes behind .bin and .idx, so that what an interrupted build leaves cannot be opened by any prefix.
IndexedDatasetWriter::IndexedDatasetWriter(std::string prefix, const std::string& suffix, TokenDtype dtype)
    : prefix_(std::move(prefix)),
      bin_aside_(prefix_ + ".bin" + suffix),
      idx_aside_(prefix_ + ".idx" + suffix),
      dtype_(dtype) {}

Result<std::unique_ptr<IndexedDatasetWriter>> IndexedDatasetWriter::create(const std::string& prefix,
                                                                           TokenDtype dtype) {
  static std::atomic<uint64_t> counter{0};  // only makes the temporary names of this process distinct
  PENT_TRY(make_directories(folder_of(prefix)));
  std::unique_ptr<IndexedDatasetWriter> writer(
      new IndexedDatasetWriter(prefix, fmt::format(".tmp-{}-{}", ::getpid(), counter++), dtype));
  PENT_ASSIGN(writer->bin_, FileWriter::create(writer->bin_aside_));
  return writer;
}

IndexedDatasetWriter::~IndexedDatasetWriter() {
  // After finish() these names are gone.
  ::unlink(bin_aside_.c_str());
  ::unlink(idx_aside_.c_str());
}

Status IndexedDatasetWriter::add_document(std::span<const int32_t> ids) {
  PENT_CHECK(bin_.has_value(), "the writer is finished");
  const int64_t largest = largest_of(dtype_);
  for (const int32_t id : ids) {
    if (id < 0 || id > largest) {
      return Error{ErrorCode::dataset_token_range,
                   fmt::format("id {} does not fit the type of the dataset (0 to {})", id, largest), prefix_,
                   "write the dataset with a wider type"};
    }
    const size_t size = token_bytes(dtype_);
    const int64_t wide = id;
    buffer_.append(reinterpret_cast<const char*>(&wide), size);  // little endian: the low bytes come first
    if (buffer_.size() >= kBufferBytes) {
      PENT_TRY(bin_->write(buffer_.data(), buffer_.size()));
      buffer_.clear();
    }
  }
  size_t left = ids.size();
  do {
    const size_t here = std::min(left, kMaxSequenceTokens);
    lengths_.push_back(static_cast<int32_t>(here));
    left -= here;
  } while (left > 0);
  document_starts_.push_back(static_cast<int64_t>(lengths_.size()));
  num_tokens_ += static_cast<int64_t>(ids.size());
  return {};
}

std::string IndexedDatasetWriter::index_bytes() const {
  std::string out("MMIDIDX\0\0", 9);
  append(out, uint64_t{1});
  append(out, static_cast<uint8_t>(dtype_));
  append(out, static_cast<uint64_t>(lengths_.size()));
  append(out, static_cast<uint64_t>(document_starts_.size()));
  out.append(reinterpret_cast<const char*>(lengths_.data()), lengths_.size() * sizeof(int32_t));
  int64_t offset = 0;
  for (const int32_t length : lengths_) {
    append(out, offset);
    offset += int64_t{length} * static_cast<int64_t>(token_bytes(dtype_));
  }
  out.append(reinterpret_cast<const char*>(document_starts_.data()), document_starts_.size() * sizeof(int64_t));
  return out;
}

Status IndexedDatasetWriter::finish(Existing existing) {
  PENT_CHECK(bin_.has_value(), "the writer is finished");
  PENT_TRY(bin_->write(buffer_.data(), buffer_.size()));
  PENT_TRY(bin_->sync());
  PENT_ASSIGN(FileWriter idx, FileWriter::create(idx_aside_));
  const std::string index = index_bytes();
  PENT_TRY(idx.write(index.data(), index.size()));
  PENT_TRY(idx.sync());
  // An index of before must not meet other tokens.
  if (existing == Existing::other && ::unlink((prefix_ + ".idx").c_str()) != 0 && errno != ENOENT) {
    return errno_error(ErrorCode::storage_write, prefix_ + ".idx", "replace");
  }
  PENT_TRY(move_into_place(bin_aside_, prefix_ + ".bin"));
  PENT_TRY(move_into_place(idx_aside_, prefix_ + ".idx"));
  bin_.reset();
  return {};
}

}  // namespace penteract::data
