#include "penteract/data/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <queue>

#include "penteract/base/check.h"

namespace penteract::data {
namespace {

constexpr size_t kShortBytes = 64;

// Bytes that no valid UTF-8 text holds.
bool never_in_utf8(int byte) { return byte == 0xC0 || byte == 0xC1 || byte >= 0xF5; }

}  // namespace

Bpe::PairTable::PairTable(size_t num_pairs)
    : entries_(std::bit_ceil(std::max<size_t>(16, 2 * num_pairs))), shift_(64 - std::countr_zero(entries_.size())) {}

void Bpe::PairTable::insert(int32_t left, int32_t right, uint32_t rank, int32_t merged) {
  const uint64_t pair = static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  size_t i = (pair * 0x9E3779B97F4A7C15ull) >> shift_;
  while (entries_[i].pair != UINT64_MAX && entries_[i].pair != pair) i = (i + 1) & (entries_.size() - 1);
  entries_[i] = {pair, rank, merged};
}

uint64_t Bpe::PairTable::find(int32_t left, int32_t right) const {
  const uint64_t pair = static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  for (size_t i = (pair * 0x9E3779B97F4A7C15ull) >> shift_;; i = (i + 1) & (entries_.size() - 1)) {
    const Entry& e = entries_[i];
    if (e.pair == pair) return static_cast<uint64_t>(e.rank) << 32 | static_cast<uint32_t>(e.merged);
    if (e.pair == UINT64_MAX) return kNone;
  }
}

Status Bpe::take_bytes(const std::vector<std::string>& token_bytes, const std::string& culprit) {
  std::fill(std::begin(byte_ids_), std::end(byte_ids_), -1);
  for (size_t id = 0; id < token_bytes.size(); ++id) {
    if (token_bytes[id].size() == 1) byte_ids_[static_cast<uint8_t>(token_bytes[id][0])] = static_cast<int32_t>(id);
  }
  for (int b = 0; b < 256; ++b) {
    if (byte_ids_[b] < 0 && !never_in_utf8(b)) {
      return Error{ErrorCode::tokenizer_unsupported, fmt::format("has no token for the byte 0x{:02X}", b), culprit,
                   "only byte-level tokenizers that can write every text are supported"};
    }
  }
  return {};
}

Result<Bpe> Bpe::build(const std::vector<std::string>& token_bytes, const std::vector<Merge>& merges, bool whole_words,
                       const std::string& culprit) {
  Bpe bpe(merges.size());
  PENT_TRY(bpe.take_bytes(token_bytes, culprit));
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    bpe.pairs_.insert(merges[rank].left, merges[rank].right, static_cast<uint32_t>(rank), merges[rank].merged);
  }
  if (whole_words) {
    for (size_t id = 0; id < token_bytes.size(); ++id) {
      if (!token_bytes[id].empty()) bpe.words_.emplace(token_bytes[id], static_cast<int32_t>(id));
    }
  }
  return bpe;
}

Result<std::vector<Bpe::Merge>> Bpe::merges_of_ranks(const std::vector<std::string>& token_bytes,
                                                     const std::string& culprit) {
  Bpe bpe(token_bytes.size());
  PENT_TRY(bpe.take_bytes(token_bytes, culprit));
  std::vector<Merge> merges;
  BpeScratch scratch;
  std::vector<int32_t> parts;
  for (size_t id = 0; id < token_bytes.size(); ++id) {
    if (token_bytes[id].size() == 1) continue;
    parts.clear();
    bpe.encode_word(token_bytes[id], scratch, parts);
    if (parts.size() != 2) {
      return Error{
          ErrorCode::tokenizer_malformed,
          fmt::format("the token of rank {} is not made of two tokens of lower rank but of {}", id, parts.size()),
          culprit, "the file is not a list of byte-pair ranks in the order of training"};
    }
    merges.push_back({parts[0], parts[1], static_cast<int32_t>(id)});
    bpe.pairs_.insert(parts[0], parts[1], static_cast<uint32_t>(merges.size() - 1), static_cast<int32_t>(id));
  }
  return merges;
}

void Bpe::encode_word(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const {
  if (!words_.empty()) {
    if (const auto found = words_.find(std::string(word)); found != words_.end()) {
      out.push_back(found->second);
      return;
    }
  }
  if (word.size() <= kShortBytes) {
    merge_short(word, scratch, out);
  } else {
    merge_long(word, scratch, out);
  }
}

// Ranks of neighbours in a flat array; each round takes the least. Few bytes: faster than any heap.
void Bpe::merge_short(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const {
  auto& ids = scratch.ids;
  auto& ranks = scratch.ranks;  // ranks[i]: of the pair (i, i + 1)
  ids.clear();
  ranks.clear();
  for (const char c : word) ids.push_back(byte_ids_[static_cast<uint8_t>(c)]);
  for (size_t i = 0; i + 1 < ids.size(); ++i) ranks.push_back(pairs_.find(ids[i], ids[i + 1]));
  while (!ranks.empty()) {
    const auto least =
        std::min_element(ranks.begin(), ranks.end(), [](uint64_t a, uint64_t b) { return (a >> 32) < (b >> 32); });
    if (*least == kNone) break;
    const auto i = static_cast<size_t>(least - ranks.begin());
    ids[i] = static_cast<int32_t>(static_cast<uint32_t>(*least));
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    ranks.erase(least);
    if (i < ranks.size()) ranks[i] = pairs_.find(ids[i], ids[i + 1]);
    if (i > 0) ranks[i - 1] = pairs_.find(ids[i - 1], ids[i]);
  }
  out.insert(out.end(), ids.begin(), ids.end());
}

// A linked list of symbols and a heap of candidate merges, as Hugging Face's Word::merge_all: an entry whose pair has
// changed since it was queued is told by its merged id, because the text of a pair at a place only grows.
void Bpe::merge_long(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const {
  auto& symbols = scratch.symbols;
  const auto n = static_cast<int32_t>(word.size());
  symbols.assign(word.size(), {});
  struct Candidate {
    uint64_t rank_and_id;
    int32_t place;
    // Least rank on top, then the leftmost.
    bool operator<(const Candidate& o) const {
      const uint64_t a = rank_and_id >> 32, b = o.rank_and_id >> 32;
      return a != b ? a > b : place > o.place;
    }
  };
  std::vector<Candidate> first;
  for (int32_t i = 0; i < n; ++i) {
    auto& s = symbols[static_cast<size_t>(i)];
    s.id = byte_ids_[static_cast<uint8_t>(word[static_cast<size_t>(i)])];
    s.previous = i - 1;
    s.next = i + 1 < n ? i + 1 : -1;
  }
  for (int32_t i = 0; i + 1 < n; ++i) {
    const uint64_t found = pairs_.find(symbols[static_cast<size_t>(i)].id, symbols[static_cast<size_t>(i) + 1].id);
    if (found != kNone) first.push_back({found, i});
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(first));
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    auto& left = symbols[static_cast<size_t>(top.place)];
    if (!left.alive || left.next < 0) continue;
    auto& right = symbols[static_cast<size_t>(left.next)];
    if (pairs_.find(left.id, right.id) != top.rank_and_id) continue;
    left.id = static_cast<int32_t>(static_cast<uint32_t>(top.rank_and_id));
    right.alive = false;
    left.next = right.next;
    if (left.next >= 0) {
      auto& after = symbols[static_cast<size_t>(left.next)];
      after.previous = top.place;
      if (const uint64_t f = pairs_.find(left.id, after.id); f != kNone) queue.push({f, top.place});
    }
    if (left.previous >= 0) {
      const auto& before = symbols[static_cast<size_t>(left.previous)];
      if (const uint64_t f = pairs_.find(before.id, left.id); f != kNone) queue.push({f, left.previous});
    }
  }
  for (int32_t i = n > 0 ? 0 : -1; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
    out.push_back(symbols[static_cast<size_t>(i)].id);
  }
}

}  // namespace penteract::data
