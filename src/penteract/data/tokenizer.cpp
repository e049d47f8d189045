#include "penteract/data/tokenizer.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "penteract/base/check.h"
#include "penteract/base/file.h"
#include "penteract/base/hash.h"
#include "penteract/data/nfc.h"
#include "penteract/data/stop.h"
#include "penteract/data/tokenizer_parts.h"
#include "penteract/data/utf8.h"

namespace penteract::data {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 28;

// Words of text repeat: the last word of each hash with its ids. 1 MiB a thread, never grows, changes no result.
class WordCache {
 public:
  static constexpr size_t kMaxBytes = 30, kMaxIds = 8;
  struct Entry {
    uint8_t num_bytes = 0, num_ids = 0;
    char bytes[kMaxBytes];
    int32_t ids[kMaxIds];
  };
  Entry& entry_of(std::string_view word) { return entries_[hash64(word.data(), word.size()) % entries_.size()]; }
  static bool holds(const Entry& e, std::string_view word) {
    return e.num_bytes == word.size() && std::memcmp(e.bytes, word.data(), word.size()) == 0;
  }
  static void store(Entry& e, std::string_view word, const int32_t* ids, size_t num_ids) {
    e.num_bytes = static_cast<uint8_t>(word.size());
    e.num_ids = static_cast<uint8_t>(num_ids);
    std::memcpy(e.bytes, word.data(), word.size());
    std::memcpy(e.ids, ids, num_ids * sizeof(int32_t));
  }

 private:
  std::vector<Entry> entries_ = std::vector<Entry>(1 << 14);
};

// Everything one encode call writes to.
struct Scratch {
  MatchScratch match;
  BpeScratch bpe;
  WordCache cache;
  std::string normalised;
  const std::atomic<bool>* stop = nullptr;
};

bool is_directory(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(TokenizerParts p) : parts(std::move(p)), raw(select(false)), normalised(select(true)) {
    for (size_t id = 0; id < parts.text_of_id.size(); ++id) {
      if (!parts.text_of_id[id].empty()) id_of_text.emplace(parts.text_of_id[id], static_cast<int32_t>(id));
    }
    for (const auto& token : parts.added) id_of_text[token.content] = token.id;
  }

  AddedTokenMatcher select(bool after_normalising) const {
    std::vector<AddedToken> chosen;
    for (AddedToken token : parts.added) {
      if (token.normalized != after_normalising) continue;
      std::string content;
      if (token.normalized && parts.nfc && normalize_nfc(token.content, content)) token.content = content;
      chosen.push_back(std::move(token));
    }
    return AddedTokenMatcher(chosen);
  }

  // A scratch that no other thread has; the pool keeps as many as ever ran at once.
  std::unique_ptr<Scratch> take() {
    const std::lock_guard lock(pool_mutex);
    if (pool.empty()) return std::make_unique<Scratch>();
    auto scratch = std::move(pool.back());
    pool.pop_back();
    return scratch;
  }
  void give(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard lock(pool_mutex);
    pool.push_back(std::move(scratch));
  }

  void word(std::string_view text, Scratch& s, std::vector<int32_t>& ids) const {
    if (text.size() > WordCache::kMaxBytes) return parts.bpe.encode_word(text, s.bpe, ids);
    auto& entry = s.cache.entry_of(text);
    if (WordCache::holds(entry, text)) {
      ids.insert(ids.end(), entry.ids, entry.ids + entry.num_ids);
      return;
    }
    const size_t before = ids.size();
    parts.bpe.encode_word(text, s.bpe, ids);
    const size_t count = ids.size() - before;
    if (count <= WordCache::kMaxIds) WordCache::store(entry, text, ids.data() + before, count);
  }

  // Cuts `piece` by the stages from `stage` on. False: a pattern went past its bound of work, or the call was stopped.
  bool split(std::string_view piece, size_t stage, Scratch& s, std::vector<int32_t>& ids) const {
    if (piece.empty()) return true;
    if (stopped(s.stop)) return false;
    if (stage == parts.stages.size()) {
      word(piece, s, ids);
      return true;
    }
    const SplitStage& cut = parts.stages[stage];
    std::string spaced;
    if (cut.add_prefix_space && piece.front() != ' ') {
      spaced = fmt::format(" {}", piece);
      piece = spaced;
    }
    size_t from = 0, begin = 0, end = 0;
    while (from < piece.size()) {
      if (cut.regex != nullptr) {
        const auto found = cut.regex->find(s.match, piece, from, begin, end);
        if (found == Regex::Found::limit) return false;
        if (found == Regex::Found::no) break;
      } else {
        begin = cut.literal.empty() ? std::string_view::npos : piece.find(cut.literal, from);
        if (begin == std::string_view::npos) break;
        end = begin + cut.literal.size();
      }
      if (!split(piece.substr(from, begin - from), stage + 1, s, ids)) return false;
      if (!split(piece.substr(begin, end - begin), stage + 1, s, ids)) return false;
      from = end;
    }
    return split(piece.substr(from), stage + 1, s, ids);
  }

  // Calls between(piece) for the text between the tokens of `matcher`, and appends the ids of the tokens.
  template <class Between>
  bool around_tokens(const AddedTokenMatcher& matcher, std::string_view text, Specials specials,
                     std::vector<int32_t>& ids, Between between) const {
    AddedTokenMatcher::Match match;
    size_t done = 0;
    for (size_t from = 0; matcher.find(text, from, match); from = match.end) {
      if (match.special && specials == Specials::as_text) continue;
      if (!between(text.substr(done, match.begin - done))) return false;
      ids.push_back(match.id);
      done = match.end;
    }
    return between(text.substr(done));
  }

  bool encode(std::string_view text, Specials specials, Scratch& s, std::vector<int32_t>& ids) const {
    return around_tokens(raw, text, specials, ids, [&](std::string_view given) {
      if (parts.nfc && normalize_nfc(given, s.normalised)) given = s.normalised;
      return around_tokens(normalised, given, specials, ids,
                           [&](std::string_view piece) { return split(piece, 0, s, ids); });
    });
  }

  TokenizerParts parts;
  AddedTokenMatcher raw, normalised;
  std::unordered_map<std::string, int32_t> id_of_text;
  std::mutex pool_mutex;
  std::vector<std::unique_ptr<Scratch>> pool;
};

Tokenizer::Tokenizer(TokenizerParts parts) : impl_(std::make_unique<Impl>(std::move(parts))) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::load(const std::string& path, const std::string& kind) {
  const bool tiktoken_kind = kind == "qwen3" || kind == "qwen2" || kind == "qwen";
  const std::string kinds = "known kinds: qwen3 (also qwen2, qwen) for a .tiktoken file, hf for a tokenizer.json";
  if (!kind.empty() && kind != "hf" && !tiktoken_kind) {
    return Error{ErrorCode::invalid_argument, fmt::format("\"{}\" is no kind of tokenizer", kind), path, kinds};
  }
  const std::string file = is_directory(path) ? path + "/tokenizer.json" : path;
  const bool tiktoken_file = file.ends_with(".tiktoken");
  if (tiktoken_file && !tiktoken_kind) {
    return Error{ErrorCode::invalid_argument, "a .tiktoken file does not say which tokenizer it belongs to", file,
                 "give its kind, for example { path = \"" + file + "\", kind = \"qwen3\" }; " + kinds};
  }
  if (tiktoken_kind && file.ends_with(".json")) {
    return Error{ErrorCode::invalid_argument, fmt::format("kind \"{}\" reads .tiktoken files", kind), file, kinds};
  }
  auto bytes = read_file(file, kMaxFileBytes);
  if (!bytes.ok()) {
    Error error = bytes.take_error();
    if (error.code == ErrorCode::file_missing) {
      error.code = ErrorCode::tokenizer_missing;
      error.remedy = "name a tokenizer.json, a folder that holds one, or a .tiktoken file";
    }
    return error;
  }
  auto parts = tiktoken_kind ? parse_tiktoken(*bytes, "qwen3", file) : parse_tokenizer_json(*bytes, file);
  if (!parts.ok()) return parts.take_error();
  Hasher128 hasher;
  hasher.update(bytes->data(), bytes->size());
  const std::string_view reader = tiktoken_kind ? "tiktoken qwen3" : "hf";
  hasher.update(reader.data(), reader.size());
  parts->fingerprint = hasher.hex();
  return std::make_unique<Tokenizer>(std::move(*parts));
}

Status Tokenizer::encode_to(std::string_view text, std::vector<int32_t>& ids, Specials specials,
                            const std::atomic<bool>* stop) const {
  std::string repaired;
  if (valid_utf8_prefix(text) != text.size()) {
    repaired = repair_utf8(text);
    text = repaired;
  }
  auto scratch = impl_->take();
  scratch->stop = stop;
  const bool done = impl_->encode(text, specials, *scratch, ids);
  impl_->give(std::move(scratch));
  if (done) return {};
  PENT_TRY(check_stop(stop));
  return Error{ErrorCode::tokenizer_unsupported, "a pattern of the tokenizer takes too long on a text",
               impl_->parts.path, "the pattern backtracks without bound; use another tokenizer file"};
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, Specials specials) const {
  std::vector<int32_t> ids;
  PENT_TRY(encode_to(text, ids, specials));
  return ids;
}

Result<std::string> Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size() || impl_->parts.text_of_id[static_cast<size_t>(id)].empty()) {
      return Error{ErrorCode::tokenizer_vocab,
                   fmt::format("has no token of id {} (largest id: {})", id, vocab_size() - 1), impl_->parts.path,
                   "are the ids of this tokenizer?"};
    }
    bytes += impl_->parts.text_of_id[static_cast<size_t>(id)];
  }
  return valid_utf8_prefix(bytes) == bytes.size() ? bytes : repair_utf8(bytes);
}

int64_t Tokenizer::vocab_size() const { return static_cast<int64_t>(impl_->parts.text_of_id.size()); }

std::optional<int32_t> Tokenizer::token_id(std::string_view content) const {
  const auto found = impl_->id_of_text.find(std::string(content));
  if (found == impl_->id_of_text.end()) return std::nullopt;
  return found->second;
}

const std::string& Tokenizer::fingerprint() const { return impl_->parts.fingerprint; }

}  // namespace penteract::data
