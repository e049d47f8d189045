#include "penteract/data/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "penteract/base/check.h"

namespace penteract::data {

AddedTokenMatcher::AddedTokenMatcher(const std::vector<AddedToken>& tokens) : nodes_(1), tokens_(tokens) {
  for (size_t t = 0; t < tokens_.size(); ++t) {
    const auto& content = tokens_[t].content;
    PENT_CHECK(!content.empty() && content.size() <= kMaxBytes, "token of {} bytes", content.size());
    int32_t node = 0;
    for (const char c : content) {
      int32_t next = child_of(node, c);
      if (next < 0) {
        next = static_cast<int32_t>(nodes_.size());
        nodes_.push_back({-1, nodes_[static_cast<size_t>(node)].child, -1, c});
        nodes_[static_cast<size_t>(node)].child = next;
      }
      node = next;
    }
    PENT_CHECK(nodes_[static_cast<size_t>(node)].token < 0, "\"{}\" twice", content);
    nodes_[static_cast<size_t>(node)].token = static_cast<int32_t>(t);
  }
  std::fill(std::begin(starts_), std::end(starts_), -1);
  int num_starts = 0;
  for (int32_t c = nodes_[0].child; c >= 0; c = nodes_[static_cast<size_t>(c)].sibling) {
    const auto byte = static_cast<uint8_t>(nodes_[static_cast<size_t>(c)].byte);
    starts_[byte] = c;
    only_start_ = byte;
    ++num_starts;
  }
  if (num_starts != 1) only_start_ = -1;
}

int32_t AddedTokenMatcher::child_of(int32_t node, char byte) const {
  int32_t c = nodes_[static_cast<size_t>(node)].child;
  while (c >= 0 && nodes_[static_cast<size_t>(c)].byte != byte) c = nodes_[static_cast<size_t>(c)].sibling;
  return c;
}

bool AddedTokenMatcher::find(std::string_view text, size_t from, Match& match) const {
  if (tokens_.empty()) return false;
  for (size_t i = from; i < text.size(); ++i) {
    if (only_start_ >= 0) {
      const auto* p = static_cast<const char*>(std::memchr(text.data() + i, only_start_, text.size() - i));
      if (p == nullptr) return false;
      i = static_cast<size_t>(p - text.data());
    }
    int32_t token = -1;
    size_t end = i + 1;
    int32_t node = starts_[static_cast<uint8_t>(text[i])];
    for (size_t k = i + 1; node >= 0; ++k) {
      if (const int32_t here = nodes_[static_cast<size_t>(node)].token; here >= 0) {
        token = here;
        end = k;
      }
      if (k == text.size()) break;
      node = child_of(node, text[k]);
    }
    if (token >= 0) {
      const auto& found = tokens_[static_cast<size_t>(token)];
      match = {i, end, found.id, found.special};
      return true;
    }
  }
  return false;
}

}  // namespace penteract::data
