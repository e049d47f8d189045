// The documents of several datasets joined into one stream of tokens. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penteract/base/result.h"
#include "penteract/data/indexed_dataset.h"

namespace penteract::data {

using DatasetList = std::vector<std::shared_ptr<const IndexedDataset>>;

class TokenStream {
 public:
  // The first source_tokens[i] tokens of each dataset, one dataset after the other. REQUIRES: they have as many.
  TokenStream(const DatasetList& datasets, const std::vector<int64_t>& source_tokens);
  // All tokens of all.
  explicit TokenStream(const DatasetList& datasets);

  int64_t num_tokens() const { return starts_.back(); }
  const std::vector<int64_t>& source_tokens() const { return source_tokens_; }

  // Errors: storage_read, dataset_token_range. REQUIRES: 0 <= first, first + count <= num_tokens().
  Status read(int64_t first, int64_t count, int32_t* out) const;

 private:
  DatasetList datasets_;
  std::vector<int64_t> source_tokens_;
  std::vector<int64_t> starts_;  // of each dataset in the stream, and the end
};

// Tells apart token sequences: a hash of the first num_tokens ids, of up to 64 blocks of 4,096 spread over them.
// Error: storage_read.
Result<std::string> sample_hash(const IndexedDataset& dataset, int64_t num_tokens);

}  // namespace penteract::data
