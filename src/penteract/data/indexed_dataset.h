// Tokenised datasets on disk, as Megatron-LM writes and reads them: PREFIX.bin (ids, nothing else) and PREFIX.idx
// (little endian: "MMIDIDX\0\0", u64 version 1, u8 dtype, u64 sequences, u64 documents + 1, i32 lengths[], i64 byte
// offsets[], i64 first sequence of each document[], optional i8 modes[]). All offsets and counts are 64 bits here.
// Thread-safety: a reader's members may be called from any threads; a writer is one thread's.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penteract/base/file.h"
#include "penteract/base/result.h"

namespace penteract::data {

// The codes of the file. Floating-point codes (6, 7) are not token ids and are refused.
enum class TokenDtype : uint8_t { u8 = 1, i8 = 2, i16 = 3, i32 = 4, i64 = 5, u16 = 8 };
size_t token_bytes(TokenDtype dtype);

// Megatron-LM's choice: u16 below 65,500 ids, else i32.
TokenDtype token_dtype_for(int64_t vocab_size);

class IndexedDataset {
 public:
  // Opens PREFIX.bin and PREFIX.idx (`path`: the prefix, or either file) and checks every length and offset.
  // Nothing that grows with the tokens is kept in memory; 16 bytes a sequence are, only where the sequences do not
  // stand one after the other in the file. Errors: dataset_missing, dataset_malformed.
  static Result<std::shared_ptr<const IndexedDataset>> open(const std::string& path);

  int64_t num_documents() const { return num_documents_; }
  int64_t num_sequences() const { return num_sequences_; }
  int64_t num_tokens() const { return num_tokens_; }
  TokenDtype dtype() const { return dtype_; }
  const std::string& prefix() const { return prefix_; }

  // `count` ids from token `first` of all sequences joined in their order.
  // Errors: storage_read, dataset_token_range (an id below 0 or past int32). REQUIRES: 0 <= first, first + count <= T.
  Status read_tokens(int64_t first, int64_t count, int32_t* out) const;

  // Where document i lies in that order: [first, second). Error: storage_read.
  Result<std::pair<int64_t, int64_t>> document_range(int64_t i) const;
  Result<std::vector<int32_t>> document(int64_t i) const;

  // Reads every token: dataset_token_range with file, position, id and vocabulary where one is not in [0, vocab_size).
  // `stop`, once set, ends the reading with `interrupted`.
  Status check_vocab(int64_t vocab_size, const std::atomic<bool>* stop = nullptr) const;

 private:
  IndexedDataset(FileReader bin, FileReader idx) : bin_(std::move(bin)), idx_(std::move(idx)) {}
  Status read_header();
  Status check_sequences();
  Status load_places();
  Status check_documents() const;
  Result<int64_t> first_token_of_sequence(int64_t sequence) const;
  Status read_raw(int64_t byte_offset, int64_t first, int64_t count, int64_t vocab_size, int32_t* out) const;
  Error malformed(const std::string& what) const;

  FileReader bin_, idx_;
  std::string prefix_;
  TokenDtype dtype_ = TokenDtype::i32;
  int64_t num_sequences_ = 0, num_documents_ = 0, num_tokens_ = 0;
  int64_t lengths_at_ = 0, offsets_at_ = 0, documents_at_ = 0;  // bytes into .idx
  bool contiguous_ = true;
  std::vector<int64_t> first_token_, byte_offset_;  // a sequence (and the end); only where !contiguous_
};

// Writes a dataset: aside, synced, renamed; .idx last. Until finish() returns there is no PREFIX.idx, so nothing opens;
// a writer destroyed before takes its files along.
class IndexedDatasetWriter {
 public:
  // Replaces a dataset of that prefix at finish(). Errors: storage_write, storage_full.
  static Result<std::unique_ptr<IndexedDatasetWriter>> create(const std::string& prefix, TokenDtype dtype);
  ~IndexedDatasetWriter();
  IndexedDatasetWriter(const IndexedDatasetWriter&) = delete;
  IndexedDatasetWriter& operator=(const IndexedDatasetWriter&) = delete;

  // One document; longer ones than 2^31 - 1 ids become several sequences of it.
  // Errors: dataset_token_range (the dtype cannot hold an id), storage_write, storage_full.
  Status add_document(std::span<const int32_t> ids);
  // Makes the dataset whole. Existing::same promises that a dataset which may stand there already holds the same tokens
  // (a cache named by its content): it stays readable all the time, also while several processes finish.
  enum class Existing { other, same };
  Status finish(Existing existing = Existing::other);
  int64_t num_documents() const { return static_cast<int64_t>(document_starts_.size()) - 1; }
  int64_t num_tokens() const { return num_tokens_; }

 private:
  IndexedDatasetWriter(std::string prefix, const std::string& suffix, TokenDtype dtype);
  std::string index_bytes() const;

  std::string prefix_, bin_aside_, idx_aside_;
  TokenDtype dtype_;
  std::optional<FileWriter> bin_;
  std::vector<int32_t> lengths_;
  std::vector<int64_t> document_starts_ = {0};
  int64_t num_tokens_ = 0;
  std::string buffer_;
};

}  // namespace penteract::data
