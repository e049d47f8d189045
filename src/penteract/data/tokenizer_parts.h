// What the readers of tokenizer files hand to Tokenizer. Internal to data/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penteract/data/added_tokens.h"
#include "penteract/data/bpe.h"
#include "penteract/data/regex.h"

namespace penteract::data {

// One step that cuts text into smaller pieces; the words that the last one leaves go to the BPE.
struct SplitStage {
  std::unique_ptr<Regex> regex;   // each match and each gap is a piece
  std::string literal;            // where there is no regex: each occurrence and each gap; "" = no cut
  bool add_prefix_space = false;  // first puts a space before a piece that has none
};

struct TokenizerParts {
  Bpe bpe;
  std::vector<std::string> text_of_id;  // bytes; "" = no such id
  std::vector<AddedToken> added;        // contents all different
  bool nfc = false;
  std::vector<SplitStage> stages;
  std::string path;  // for messages
  std::string fingerprint;
};

// Token ids above this are refused: tables are indexed by id.
inline constexpr int64_t kMaxTokenId = (int64_t{1} << 24) - 1;

// `bytes`: the file; `path`: for messages. The fingerprint is left to the caller.
Result<TokenizerParts> parse_tokenizer_json(const std::string& bytes, const std::string& path);
// `kind`: "qwen3".
Result<TokenizerParts> parse_tiktoken(const std::string& bytes, const std::string& kind, const std::string& path);

}  // namespace penteract::data
