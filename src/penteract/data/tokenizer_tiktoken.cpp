// .tiktoken files: a base64 token and its rank a line, ranks 0, 1, 2, … in order.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <unordered_set>

#include "penteract/base/check.h"
#include "penteract/base/text.h"
#include "penteract/data/tokenizer_parts.h"

namespace penteract::data {
namespace {

constexpr size_t kMaxTokenBytes = 4096;

// Qwen2, Qwen2.5 and Qwen3: tokenizer.json of the published models.
constexpr std::string_view kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::array<std::string_view, 26> kQwenTokens = {
    "<|endoftext|>",  "<|im_start|>",   "<|im_end|>",      "<|object_ref_start|>", "<|object_ref_end|>",
    "<|box_start|>",  "<|box_end|>",    "<|quad_start|>",  "<|quad_end|>",         "<|vision_start|>",
    "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>",   "<|video_pad|>",        "<tool_call>",
    "</tool_call>",   "<|fim_prefix|>", "<|fim_middle|>",  "<|fim_suffix|>",       "<|fim_pad|>",
    "<|repo_name|>",  "<|file_sep|>",   "<tool_response>", "</tool_response>",     "<think>",
    "</think>"};
constexpr size_t kQwenSpecial = 14;  // of these; the others are added tokens that are not special

// The bytes of a base64 word with padding; false when it is none.
bool decode_base64(std::string_view word, std::string& out) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  out.clear();
  if (word.empty() || word.size() % 4 != 0) return false;
  const size_t padding = word.ends_with("==") ? 2 : word.ends_with("=") ? 1 : 0;
  uint32_t bits = 0;
  for (size_t i = 0; i < word.size(); ++i) {
    size_t digit = 0;
    if (i < word.size() - padding) {
      digit = kDigits.find(word[i]);
      if (digit == std::string_view::npos) return false;
    }
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (i % 4 == 3) {
      for (int shift : {16, 8, 0}) out.push_back(static_cast<char>(bits >> shift));
      bits = 0;
    }
  }
  out.resize(out.size() - padding);
  return true;
}

Result<std::vector<std::string>> read_ranks(const std::string& bytes, const std::string& path) {
  std::vector<std::string> tokens;
  std::unordered_set<std::string> seen;
  std::string token;
  size_t line_number = 0;
  for (size_t start = 0; start < bytes.size();) {
    ++line_number;
    const size_t end = std::min(bytes.find('\n', start), bytes.size());
    const auto line = trim(std::string_view(bytes).substr(start, end - start));
    start = end + 1;
    if (line.empty()) continue;
    const auto malformed = [&](const std::string& what) {
      return Error{ErrorCode::tokenizer_malformed, what, fmt::format("{}:{}", path, line_number),
                   "a line is a base64 token, a space and its rank; the ranks count up from 0"};
    };
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) return malformed("has no rank");
    const auto number = line.substr(space + 1);
    uint64_t rank = 0;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), rank);
    if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size()) return malformed("has no rank");
    if (!decode_base64(line.substr(0, space), token)) return malformed("is not base64");
    if (token.empty() || token.size() > kMaxTokenBytes)
      return malformed(fmt::format("a token of {} bytes", token.size()));
    if (rank != tokens.size()) return malformed(fmt::format("has rank {}, expected {}", rank, tokens.size()));
    if (static_cast<int64_t>(rank) > kMaxTokenId) return malformed("has too many tokens");
    if (!seen.insert(token).second) return malformed("has a token that stood before");
    tokens.push_back(token);
  }
  return tokens;
}

}  // namespace

Result<TokenizerParts> parse_tiktoken(const std::string& bytes, const std::string& kind, const std::string& path) {
  PENT_CHECK(kind == "qwen3", "kind {}", kind);
  PENT_ASSIGN(std::vector<std::string> tokens, read_ranks(bytes, path));
  PENT_ASSIGN(const auto merges, Bpe::merges_of_ranks(tokens, path));
  PENT_ASSIGN(Bpe bpe, Bpe::build(tokens, merges, false, path));
  PENT_ASSIGN(Regex regex, Regex::compile(kQwenPattern, path));
  std::vector<AddedToken> added;
  for (size_t i = 0; i < kQwenTokens.size(); ++i) {
    added.push_back({std::string(kQwenTokens[i]), static_cast<int32_t>(tokens.size()), i < kQwenSpecial, false});
    tokens.emplace_back(kQwenTokens[i]);
  }
  std::vector<SplitStage> stages;
  stages.push_back({std::make_unique<Regex>(std::move(regex)), "", false});
  return TokenizerParts{std::move(bpe), std::move(tokens), std::move(added), true, std::move(stages), path, ""};
}

}  // namespace penteract::data
