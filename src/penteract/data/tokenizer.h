// Text to token ids and back, id for id as Hugging Face `tokenizers` does: byte-level BPE of a tokenizer.json or of a
// .tiktoken file. What a file asks for and this does not do is refused by name (tokenizer_unsupported).
//   tokenizer.json: model BPE (ignore_merges too); normalizer null or NFC; pre_tokenizer ByteLevel, Split (Isolated)
//     or a Sequence that ends in ByteLevel; decoder ByteLevel; added tokens without lstrip, rstrip, single_word.
//   .tiktoken: base64 token and rank a line; `kind` says what the file does not: pattern, NFC, special tokens.
// No special tokens are added: post-processors that only add them are accepted and left out; truncation and padding,
// which belong to a call, too.
// Invalid UTF-8 becomes U+FFFD, one for each maximal ill-formed part (utf8.h). Classes of characters (letter, digit, …)
// are those of the installed PCRE2: characters assigned later than it knows may be split otherwise.
// Thread-safety: immutable after load; every member may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penteract/base/result.h"

namespace penteract::data {

struct TokenizerParts;

// Whether special tokens that stand in the text become their id, or are text like any other.
// Added tokens that are not special are recognised in both cases, as in Hugging Face.
enum class Specials { recognise, as_text };

class Tokenizer {
 public:
  // `path`: a tokenizer.json, a folder that holds one, or a .tiktoken file. `kind`: "" = from the file (tokenizer.json),
  // "hf" = tokenizer.json, "qwen3" (also "qwen2", "qwen") = .tiktoken of Qwen.
  // Errors: tokenizer_missing, tokenizer_malformed, tokenizer_unsupported, invalid_argument (kind).
  static Result<std::unique_ptr<Tokenizer>> load(const std::string& path, const std::string& kind);
  explicit Tokenizer(TokenizerParts parts);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // The ids of `text`. Error: tokenizer_unsupported, where a pattern of the file needs more work than is allowed for.
  Result<std::vector<int32_t>> encode(std::string_view text, Specials specials = Specials::recognise) const;

  // The same, appended to `ids` (on an error `ids` holds a part). `stop`, once set, ends it within a word: interrupted.
  Status encode_to(std::string_view text, std::vector<int32_t>& ids, Specials specials = Specials::recognise,
                   const std::atomic<bool>* stop = nullptr) const;

  // The text of the ids; bytes that are no UTF-8 (a character cut in two) become U+FFFD. Error: tokenizer_vocab.
  Result<std::string> decode(std::span<const int32_t> ids) const;

  // The largest id + 1. Models may have more rows.
  int64_t vocab_size() const;

  // The id of the token whose text is `content` (bytes, not the byte-level alphabet).
  std::optional<int32_t> token_id(std::string_view content) const;

  // Changes when anything changes that ids depend on: file and kind. 32 hexadecimal digits.
  const std::string& fingerprint() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The end-of-document token of a run. `eod`: its text; "" = eos_token of the tokenizer_config.json beside the tokenizer
// at `path`, else <|endoftext|> where the tokenizer has it. Errors: tokenizer_vocab, tokenizer_malformed.
Result<int32_t> eod_id(const Tokenizer& tokenizer, const std::string& path, const std::string& eod);

}  // namespace penteract::data
