#include "penteract/data/token_stream.h"

#include <algorithm>

#include "penteract/base/check.h"
#include "penteract/base/hash.h"

namespace penteract::data {
namespace {

std::vector<int64_t> all_tokens(const DatasetList& datasets) {
  std::vector<int64_t> tokens;
  for (const auto& dataset : datasets) tokens.push_back(dataset->num_tokens());
  return tokens;
}

}  // namespace

TokenStream::TokenStream(const DatasetList& datasets, const std::vector<int64_t>& source_tokens)
    : datasets_(datasets), source_tokens_(source_tokens), starts_(1, 0) {
  PENT_CHECK_LE(source_tokens_.size(), datasets_.size());
  for (size_t i = 0; i < source_tokens_.size(); ++i) {
    PENT_CHECK(source_tokens_[i] >= 0 && source_tokens_[i] <= datasets_[i]->num_tokens(), "{} of {} tokens",
               source_tokens_[i], datasets_[i]->num_tokens());
    starts_.push_back(starts_.back() + source_tokens_[i]);
  }
}

TokenStream::TokenStream(const DatasetList& datasets) : TokenStream(datasets, all_tokens(datasets)) {}

Status TokenStream::read(int64_t first, int64_t count, int32_t* out) const {
  PENT_CHECK(first >= 0 && count >= 0 && first <= num_tokens() && count <= num_tokens() - first, "{} + {} of {}", first,
             count, num_tokens());
  auto source = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin()) - 1;
  for (; count > 0; ++source) {
    const int64_t here = std::min(count, starts_[source + 1] - first);
    PENT_TRY(datasets_[source]->read_tokens(first - starts_[source], here, out));
    first += here;
    out += here;
    count -= here;
  }
  return {};
}

Result<std::string> sample_hash(const IndexedDataset& dataset, int64_t num_tokens) {
  constexpr int64_t kBlocks = 64, kBlockTokens = 4096;
  Hasher128 hasher;
  hasher.update(&num_tokens, sizeof num_tokens);
  std::vector<int32_t> ids(static_cast<size_t>(kBlockTokens));
  for (int64_t b = 0; b < kBlocks; ++b) {
    // Blocks lie side by side where the tokens are few.
    const int64_t first = num_tokens <= kBlocks * kBlockTokens ? std::min(b * kBlockTokens, num_tokens)
                                                               : (num_tokens - kBlockTokens) / (kBlocks - 1) * b;
    const int64_t count = std::min(kBlockTokens, num_tokens - first);
    PENT_TRY(dataset.read_tokens(first, count, ids.data()));
    hasher.update(ids.data(), static_cast<size_t>(count) * sizeof(int32_t));
  }
  return hasher.hex();
}

}  // namespace penteract::data
