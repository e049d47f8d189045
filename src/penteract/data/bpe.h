// Byte-pair encoding of one word (Sennrich et al. 2016; byte level as in GPT-2): bytes, then merges in order of rank,
// leftmost first, until none applies. Immutable after build; encode_word is safe from threads with their own scratch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "penteract/base/result.h"

namespace penteract::data {

// The working memory of one thread: kept between words so that nothing is allocated for usual ones.
struct BpeScratch {
  struct Symbol {
    int32_t id = 0;
    int32_t previous = -1, next = -1;
    bool alive = true;
  };
  std::vector<Symbol> symbols;
  std::vector<int32_t> ids;
  std::vector<uint64_t> ranks;
};

class Bpe {
 public:
  // token_bytes[id]: the bytes of the token, "" where the id has none. `merges`: pairs of ids and the id of their
  // concatenation, in order of rank (a pair given twice keeps its last rank). Every byte that UTF-8 can hold must be
  // a token: tokenizer_unsupported otherwise. whole_words: a word that is a token is that token, whatever the merges
  // (Hugging Face: ignore_merges).
  struct Merge {
    int32_t left, right, merged;
  };
  static Result<Bpe> build(const std::vector<std::string>& token_bytes, const std::vector<Merge>& merges,
                           bool whole_words, const std::string& culprit);

  // The merges that a list of tokens in order of rank implies (.tiktoken): token r is made of the two tokens that the
  // merges below r leave of its bytes. Error: tokenizer_malformed where they leave another number.
  static Result<std::vector<Merge>> merges_of_ranks(const std::vector<std::string>& token_bytes,
                                                    const std::string& culprit);

  // Appends the ids of `word`. O(n²) below 64 bytes, O(n log n) above. REQUIRES: word valid UTF-8 of less than 2 GiB.
  void encode_word(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const;

 private:
  // An open-addressing table of pairs: a lookup is one cache line in most cases.
  class PairTable {
   public:
    struct Entry {
      uint64_t pair = UINT64_MAX;
      uint32_t rank = UINT32_MAX;
      int32_t merged = -1;
    };
    explicit PairTable(size_t num_pairs);
    void insert(int32_t left, int32_t right, uint32_t rank, int32_t merged);
    // rank << 32 | merged, or kNone.
    uint64_t find(int32_t left, int32_t right) const;

   private:
    std::vector<Entry> entries_;
    int shift_;
  };
  static constexpr uint64_t kNone = UINT64_MAX;

  explicit Bpe(size_t num_pairs) : pairs_(num_pairs) {}
  Status take_bytes(const std::vector<std::string>& token_bytes, const std::string& culprit);
  void merge_short(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const;
  void merge_long(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const;

  int32_t byte_ids_[256];
  PairTable pairs_;
  std::unordered_map<std::string, int32_t> words_;  // only with whole_words
};

}  // namespace penteract::data
