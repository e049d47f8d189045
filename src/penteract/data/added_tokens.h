// The tokens that are recognised in text as they stand (<|im_end|>, <think>): the longest at the leftmost place.
// Immutable after build, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penteract/base/result.h"

namespace penteract::data {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;     // plain text when specials are not recognised
  bool normalized = false;  // searched in the normalised text instead of the text as given
};

// Finds the tokens of a list in text. A search costs at most kMaxBytes steps a byte.
class AddedTokenMatcher {
 public:
  static constexpr size_t kMaxBytes = 1024;  // of one token

  // REQUIRES: contents not empty, at most kMaxBytes, all different.
  explicit AddedTokenMatcher(const std::vector<AddedToken>& tokens);

  struct Match {
    size_t begin = 0, end = 0;
    int32_t id = 0;
    bool special = false;
  };
  // The leftmost token at or after `from`, the longest there; false when there is none.
  bool find(std::string_view text, size_t from, Match& match) const;

 private:
  // A trie: node 0 is the root; the children of a node are a chain of siblings.
  struct Node {
    int32_t child = -1, sibling = -1, token = -1;
    char byte = 0;
  };
  int32_t child_of(int32_t node, char byte) const;
  std::vector<Node> nodes_;
  std::vector<AddedToken> tokens_;
  int32_t starts_[256];  // the root's child for a byte, -1 where none
  int only_start_ = -1;  // the one first byte of all tokens, where there is one
};

}  // namespace penteract::data
