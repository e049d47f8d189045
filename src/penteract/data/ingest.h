// From files of text to tokenised datasets: every document tokenised without special tokens and closed by one
// end-of-document token. Blank documents are skipped by the rule of documents.h and counted.
// Thread-safety: the functions may be called from several threads and processes at once, on one cache folder too.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penteract/base/result.h"
#include "penteract/data/documents.h"
#include "penteract/data/indexed_dataset.h"
#include "penteract/data/tokenizer.h"

namespace penteract::data {

struct IngestOptions {
  const Tokenizer* tokenizer = nullptr;
  int32_t eod = -1;
  std::string cache_dir;  // of tokenised files; made where it is absent. Not read by build_dataset
  DocumentReader::Options documents;
  int num_threads = 1;                      // the result does not depend on it
  const std::atomic<bool>* stop = nullptr;  // set: the call ends within a moment with `interrupted`
  // Bytes of text done, of all. Called from any thread, one at a time, never with less done than before.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;
};

struct IngestCounts {
  DocumentReader::Counts text;
  int64_t num_tokens = 0;  // with the end-of-document tokens
};

// A file that training can read from.
struct OpenSource {
  std::string path;  // as it was given
  SourceKind kind = SourceKind::text;
  std::shared_ptr<const IndexedDataset> dataset;
  IngestCounts counts;      // of a dataset: documents and tokens
  bool from_cache = false;  // tokenised by an earlier call
};

// Opens every path: datasets as they are, others tokenised into the cache, once for each content, tokenizer and eod.
// All ids are below vocab_size: a tokenizer with more is tokenizer_vocab, a dataset that holds one dataset_token_range.
// Errors besides: dataset_missing, dataset_empty (no document, no token), dataset_malformed, text_malformed,
// recipe_unsupported, storage_write, storage_full, interrupted (files that are done stay in the cache). Deletes what dead
// processes left in the cache.
Result<std::vector<OpenSource>> open_sources(const std::vector<std::string>& paths, const IngestOptions& options,
                                             int64_t vocab_size);

// Writes one dataset PREFIX.bin/.idx of all paths in their order (datasets among them are copied as they are, their
// documents already closed). An interrupted call leaves nothing that opens; what a killed one left beside PREFIX is deleted.
// Errors: as above.
Result<IngestCounts> build_dataset(const std::vector<std::string>& paths, const IngestOptions& options,
                                   const std::string& prefix);

}  // namespace penteract::data
