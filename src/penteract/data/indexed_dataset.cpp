#include "penteract/data/indexed_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "penteract/base/check.h"
#include "penteract/data/stop.h"

namespace penteract::data {
namespace {

constexpr std::string_view kMagic{"MMIDIDX\0\0", 9};
constexpr int64_t kHeaderBytes = 34;
constexpr int64_t kChunk = 1 << 17;  // entries or tokens read at once
const char* const kAgain = "the file is damaged or was not written by Megatron-LM or penteract: make the dataset again";

// Reads `count` fixed-size numbers of .idx from entry `first` of the table at byte `at`.
template <class T>
Status read_table(const FileReader& file, int64_t at, int64_t first, int64_t count, std::vector<T>& out) {
  out.resize(static_cast<size_t>(count));
  return file.read_at(static_cast<uint64_t>(at + first * static_cast<int64_t>(sizeof(T))), out.data(),
                      out.size() * sizeof(T));
}

// The first id that is outside [0, limit), as its index; -1 where there is none.
template <class T>
int64_t widen(const char* bytes, int64_t count, int64_t limit, int32_t* out) {
  int64_t bad = -1;
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    const auto wide = static_cast<int64_t>(value);
    if ((wide < 0 || wide >= limit) && bad < 0) bad = i;
    out[i] = static_cast<int32_t>(wide);
  }
  return bad;
}

int64_t widen_any(TokenDtype dtype, const char* bytes, int64_t count, int64_t limit, int32_t* out) {
  switch (dtype) {
    case TokenDtype::u8: return widen<uint8_t>(bytes, count, limit, out);
    case TokenDtype::i8: return widen<int8_t>(bytes, count, limit, out);
    case TokenDtype::i16: return widen<int16_t>(bytes, count, limit, out);
    case TokenDtype::i32: return widen<int32_t>(bytes, count, limit, out);
    case TokenDtype::i64: return widen<int64_t>(bytes, count, limit, out);
    case TokenDtype::u16: return widen<uint16_t>(bytes, count, limit, out);
  }
  PENT_CHECK(false, "dtype {}", static_cast<int>(dtype));
}

std::string read_number(TokenDtype dtype, const char* bytes) {
  int64_t value = 0;
  std::memcpy(&value, bytes, token_bytes(dtype));
  if (dtype == TokenDtype::i8) value = static_cast<int8_t>(value);
  if (dtype == TokenDtype::i16) value = static_cast<int16_t>(value);
  if (dtype == TokenDtype::i32) value = static_cast<int32_t>(value);
  return fmt::format("{}", value);
}

Result<FileReader> open_part(const std::string& path, const std::string& other) {
  auto file = FileReader::open(path);
  if (file.ok() || file.error().code != ErrorCode::file_missing) return file;
  return Error{ErrorCode::dataset_missing, "is not there", path,
               fmt::format("a dataset is two files, this one and {}; name their common part", other)};
}

}  // namespace

size_t token_bytes(TokenDtype dtype) {
  switch (dtype) {
    case TokenDtype::u8:
    case TokenDtype::i8: return 1;
    case TokenDtype::i16:
    case TokenDtype::u16: return 2;
    case TokenDtype::i32: return 4;
    case TokenDtype::i64: return 8;
  }
  PENT_CHECK(false, "dtype {}", static_cast<int>(dtype));
}

TokenDtype token_dtype_for(int64_t vocab_size) { return vocab_size < 65500 ? TokenDtype::u16 : TokenDtype::i32; }

Error IndexedDataset::malformed(const std::string& what) const {
  return {ErrorCode::dataset_malformed, what, idx_.path(), kAgain};
}

Result<std::shared_ptr<const IndexedDataset>> IndexedDataset::open(const std::string& path) {
  std::string prefix = path;
  if (path.ends_with(".bin") || path.ends_with(".idx")) prefix.resize(path.size() - 4);
  PENT_ASSIGN(FileReader idx, open_part(prefix + ".idx", prefix + ".bin"));
  PENT_ASSIGN(FileReader bin, open_part(prefix + ".bin", prefix + ".idx"));
  std::shared_ptr<IndexedDataset> dataset(new IndexedDataset(std::move(bin), std::move(idx)));
  dataset->prefix_ = prefix;
  PENT_TRY(dataset->read_header());
  PENT_TRY(dataset->check_sequences());
  PENT_TRY(dataset->check_documents());
  return std::shared_ptr<const IndexedDataset>(std::move(dataset));
}

Status IndexedDataset::read_header() {
  char header[kHeaderBytes];
  if (idx_.size_bytes() < sizeof header)
    return malformed(fmt::format("has {} bytes, fewer than a header", idx_.size_bytes()));
  PENT_TRY(idx_.read_at(0, header, sizeof header));
  if (std::string_view(header, kMagic.size()) != kMagic) return malformed("does not begin with MMIDIDX");
  uint64_t version = 0, sequences = 0, documents = 0;
  std::memcpy(&version, header + 9, 8);
  const auto code = static_cast<uint8_t>(header[17]);
  std::memcpy(&sequences, header + 18, 8);
  std::memcpy(&documents, header + 26, 8);
  if (version != 1) return malformed(fmt::format("has version {}, expected 1", version));
  if (code < 1 || code > 8) return malformed(fmt::format("has dtype code {}, known are 1 to 8", code));
  if (code == 6 || code == 7) return malformed("holds floating-point numbers, not token ids");
  dtype_ = static_cast<TokenDtype>(code);
  // Before any product: no count can exceed the file.
  const uint64_t size = idx_.size_bytes();
  if (sequences > size / 12 || documents > size / 8) {
    return malformed(fmt::format("names {} sequences and {} documents in {} bytes", sequences, documents, size));
  }
  const uint64_t need = kHeaderBytes + sequences * 12 + documents * 8;
  if (size != need && size != need + sequences) {
    return malformed(fmt::format("has {} bytes, expected {} (or {} with modes)", size, need, need + sequences));
  }
  if (documents == 0) return malformed("has no list of documents");
  num_sequences_ = static_cast<int64_t>(sequences);
  num_documents_ = static_cast<int64_t>(documents) - 1;
  lengths_at_ = kHeaderBytes;
  offsets_at_ = lengths_at_ + num_sequences_ * 4;
  documents_at_ = offsets_at_ + num_sequences_ * 8;
  return {};
}

Status IndexedDataset::check_sequences() {
  const auto item = static_cast<int64_t>(token_bytes(dtype_));
  const auto bin_bytes = static_cast<int64_t>(bin_.size_bytes());
  std::vector<int32_t> lengths;
  std::vector<int64_t> offsets;
  for (int64_t first = 0; first < num_sequences_; first += kChunk) {
    const int64_t count = std::min(kChunk, num_sequences_ - first);
    PENT_TRY(read_table(idx_, lengths_at_, first, count, lengths));
    PENT_TRY(read_table(idx_, offsets_at_, first, count, offsets));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t length = lengths[static_cast<size_t>(i)], offset = offsets[static_cast<size_t>(i)];
      if (length < 0 || offset < 0 || offset % item != 0 || offset > bin_bytes ||
          length > (bin_bytes - offset) / item) {
        return malformed(fmt::format("sequence {} has {} tokens of {} bytes from byte {} of a .bin of {} bytes",
                                     first + i, length, item, offset, bin_bytes));
      }
      contiguous_ = contiguous_ && offset == num_tokens_ * item;
      if (length > INT64_MAX / 16 - num_tokens_) return malformed("has more tokens than can be counted");
      num_tokens_ += length;
    }
  }
  return contiguous_ ? Status() : load_places();
}

Status IndexedDataset::load_places() {
  PENT_TRY(read_table(idx_, offsets_at_, 0, num_sequences_, byte_offset_));
  std::vector<int32_t> lengths;
  PENT_TRY(read_table(idx_, lengths_at_, 0, num_sequences_, lengths));
  first_token_.assign(1, 0);
  for (const int32_t length : lengths) first_token_.push_back(first_token_.back() + length);
  return {};
}

Status IndexedDataset::check_documents() const {
  std::vector<int64_t> starts;
  int64_t previous = 0;
  for (int64_t first = 0; first <= num_documents_; first += kChunk) {
    const int64_t count = std::min(kChunk, num_documents_ + 1 - first);
    PENT_TRY(read_table(idx_, documents_at_, first, count, starts));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t start = starts[static_cast<size_t>(i)];
      if (start < previous || start > num_sequences_ || (first + i == 0 && start != 0)) {
        return malformed(fmt::format("document {} starts at sequence {} of {}, after one at {}", first + i, start,
                                     num_sequences_, previous));
      }
      previous = start;
    }
  }
  if (previous != num_sequences_) {
    return malformed(fmt::format("its documents end at sequence {} of {}", previous, num_sequences_));
  }
  return {};
}

Result<int64_t> IndexedDataset::first_token_of_sequence(int64_t sequence) const {
  if (!contiguous_) return first_token_[static_cast<size_t>(sequence)];
  if (sequence == num_sequences_) return num_tokens_;
  std::vector<int64_t> offset;
  PENT_TRY(read_table(idx_, offsets_at_, sequence, 1, offset));
  return offset[0] / static_cast<int64_t>(token_bytes(dtype_));
}

Status IndexedDataset::read_raw(int64_t byte_offset, int64_t first, int64_t count, int64_t vocab_size,
                                int32_t* out) const {
  const size_t item = token_bytes(dtype_);
  std::vector<char> bytes(static_cast<size_t>(count) * item);
  PENT_TRY(bin_.read_at(static_cast<uint64_t>(byte_offset), bytes.data(), bytes.size()));
  const int64_t bad = widen_any(dtype_, bytes.data(), count, vocab_size, out);
  if (bad < 0) return {};
  return Error{ErrorCode::dataset_token_range,
               fmt::format("token {} is {}, outside the vocabulary of {} ids", first + bad,
                           read_number(dtype_, bytes.data() + static_cast<size_t>(bad) * item), vocab_size),
               bin_.path(), "the dataset was made with another tokenizer: make it again, or set vocab_size to fit"};
}

Status IndexedDataset::read_tokens(int64_t first, int64_t count, int32_t* out) const {
  PENT_CHECK(first >= 0 && count >= 0 && first <= num_tokens_ && count <= num_tokens_ - first, "tokens {} + {} of {}",
             first, count, num_tokens_);
  const auto item = static_cast<int64_t>(token_bytes(dtype_));
  constexpr int64_t kAnyId = int64_t{INT32_MAX} + 1;
  if (contiguous_) return read_raw(first * item, first, count, kAnyId, out);
  auto at = std::upper_bound(first_token_.begin(), first_token_.end(), first) - first_token_.begin() - 1;
  while (count > 0) {
    const auto s = static_cast<size_t>(at++);
    const int64_t within = first - first_token_[s];
    const int64_t here = std::min(count, first_token_[s + 1] - first);
    PENT_TRY(read_raw(byte_offset_[s] + within * item, first, here, kAnyId, out));
    first += here;
    out += here;
    count -= here;
  }
  return {};
}

Result<std::pair<int64_t, int64_t>> IndexedDataset::document_range(int64_t i) const {
  PENT_CHECK(i >= 0 && i < num_documents_, "document {} of {}", i, num_documents_);
  std::vector<int64_t> sequences;
  PENT_TRY(read_table(idx_, documents_at_, i, 2, sequences));
  PENT_ASSIGN(const int64_t begin, first_token_of_sequence(sequences[0]));
  PENT_ASSIGN(const int64_t end, first_token_of_sequence(sequences[1]));
  return std::pair(begin, end);
}

Result<std::vector<int32_t>> IndexedDataset::document(int64_t i) const {
  PENT_ASSIGN(const auto range, document_range(i));
  std::vector<int32_t> ids(static_cast<size_t>(range.second - range.first));
  PENT_TRY(read_tokens(range.first, range.second - range.first, ids.data()));
  return ids;
}

Status IndexedDataset::check_vocab(int64_t vocab_size, const std::atomic<bool>* stop) const {
  const auto item = static_cast<int64_t>(token_bytes(dtype_));
  std::vector<int32_t> ids(static_cast<size_t>(kChunk));
  const auto check = [&](int64_t at, int64_t first, int64_t count) -> Status {
    PENT_TRY(check_stop(stop));
    return read_raw(at, first, count, vocab_size, ids.data());
  };
  if (contiguous_) {
    for (int64_t first = 0; first < num_tokens_; first += kChunk) {
      PENT_TRY(check(first * item, first, std::min(kChunk, num_tokens_ - first)));
    }
    return {};
  }
  for (size_t s = 0; s < byte_offset_.size(); ++s) {
    const int64_t end = first_token_[s + 1];
    for (int64_t first = first_token_[s]; first < end; first += kChunk) {
      const int64_t at = byte_offset_[s] + (first - first_token_[s]) * item;
      PENT_TRY(check(at, first, std::min(kChunk, end - first)));
    }
  }
  return {};
}

}  // namespace penteract::data
