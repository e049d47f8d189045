// tokenizer.json of Hugging Face `tokenizers`. Every member that could change ids is read or refused.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "penteract/base/json.h"
#include "penteract/data/byte_level.h"
#include "penteract/data/nfc.h"
#include "penteract/data/tokenizer_parts.h"

namespace penteract::data {
namespace {

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr size_t kMaxStages = 16;

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Result<TokenizerParts> read(const Json& root) {
    if (!root.is_object()) return malformed("is no JSON object");
    static const Json kNull;
    const auto part = [&](const char* key) -> const Json& {
      const auto found = root.find(key);
      return found == root.end() ? kNull : *found;
    };
    PENT_TRY(normalizer(part("normalizer"), 0));
    PENT_TRY(pre_tokenizer(part("pre_tokenizer")));
    PENT_TRY(only_adds_specials(part("post_processor")));
    PENT_TRY(decoder(part("decoder")));
    PENT_ASSIGN(Bpe bpe, model(part("model")));
    PENT_TRY(added_tokens(part("added_tokens")));
    return TokenizerParts{
        std::move(bpe), std::move(text_of_id_), std::move(added_), nfc_, std::move(stages_), path_, ""};
  }

 private:
  Error malformed(const std::string& what) const {
    return {ErrorCode::tokenizer_malformed, what, path_, "is this a tokenizer.json of Hugging Face tokenizers?"};
  }
  Error unsupported(const std::string& what) const {
    return {ErrorCode::tokenizer_unsupported, what, path_,
            "supported: byte-level BPE with NFC, Split (Isolated) and ByteLevel"};
  }
  static std::string type_of(const Json& value) {
    if (!value.is_object()) return "";
    const auto type = value.find("type");
    return type != value.end() && type->is_string() ? type->get<std::string>() : "";
  }
  static bool is_set(const Json& object, const char* key) {  // present, and not null, false, "" or 0
    const auto v = object.find(key);
    if (v == object.end() || v->is_null()) return false;
    if (v->is_boolean()) return v->get<bool>();
    if (v->is_string()) return !v->get_ref<const std::string&>().empty();
    return !(v->is_number() && v->get<double>() == 0);
  }
  Result<bool> flag(const Json& object, const char* key, bool unset) const {
    const auto v = object.find(key);
    if (v == object.end()) return unset;
    if (!v->is_boolean()) return malformed(fmt::format("{} is neither true nor false", key));
    return v->get<bool>();
  }

  Status normalizer(const Json& value, int depth) {
    const std::string type = type_of(value);
    if (value.is_null()) return {};
    if (type == "NFC") {
      nfc_ = true;
      return {};
    }
    if (type == "Sequence" && depth == 0 && value.contains("normalizers") && value["normalizers"].is_array()) {
      for (const auto& step : value["normalizers"]) PENT_TRY(normalizer(step, 1));
      return {};
    }
    return unsupported(fmt::format("normalizer \"{}\" is not supported", type));
  }

  Status pre_tokenizer(const Json& value) {
    if (type_of(value) != "Sequence") {
      PENT_TRY(split_stage(value));
    } else {
      if (!value.contains("pretokenizers") || !value["pretokenizers"].is_array()) {
        return malformed("a Sequence has no pretokenizers");
      }
      for (const auto& step : value["pretokenizers"]) PENT_TRY(split_stage(step));
    }
    if (!byte_level_) return unsupported("pre_tokenizer has no ByteLevel: the vocabulary is not byte level");
    return {};
  }

  Status split_stage(const Json& value) {
    const std::string type = type_of(value);
    if (byte_level_) return unsupported(fmt::format("pre_tokenizer \"{}\" after ByteLevel is not supported", type));
    if (stages_.size() >= kMaxStages) return unsupported(fmt::format("more than {} pre_tokenizers", kMaxStages));
    SplitStage stage;
    if (type == "ByteLevel") {
      byte_level_ = true;
      PENT_ASSIGN(stage.add_prefix_space, flag(value, "add_prefix_space", true));
      PENT_ASSIGN(const bool use_regex, flag(value, "use_regex", true));
      if (use_regex) PENT_TRY(regex(std::string(kGpt2Pattern), stage));
      stages_.push_back(std::move(stage));
      return {};
    }
    if (type != "Split") return unsupported(fmt::format("pre_tokenizer \"{}\" is not supported", type));
    const std::string behavior =
        value.value("behavior", Json()).is_string() ? value["behavior"].get<std::string>() : "";
    if (behavior != "Isolated")
      return unsupported(fmt::format("Split with behavior \"{}\" is not supported", behavior));
    PENT_ASSIGN(const bool invert, flag(value, "invert", false));
    if (invert) return unsupported("Split with invert is not supported");
    const Json pattern = value.value("pattern", Json());
    if (!pattern.is_object() || pattern.size() != 1 || !pattern.begin()->is_string()) {
      return malformed("a Split has no pattern of the form {\"Regex\": text} or {\"String\": text}");
    }
    const auto text = pattern.begin()->get<std::string>();
    if (pattern.begin().key() == "Regex") {
      PENT_TRY(regex(text, stage));
    } else if (pattern.begin().key() == "String" && !text.empty()) {
      stage.literal = text;
    } else {
      return unsupported(fmt::format("Split with a {} pattern \"{}\" is not supported", pattern.begin().key(), text));
    }
    stages_.push_back(std::move(stage));
    return {};
  }

  Status regex(const std::string& pattern, SplitStage& stage) const {
    PENT_ASSIGN(Regex compiled, Regex::compile(pattern, path_));
    stage.regex = std::make_unique<Regex>(std::move(compiled));
    return {};
  }

  // Post-processors are left out because documents are joined without special tokens; what would do more is refused.
  Status only_adds_specials(const Json& value) const {
    const std::string type = type_of(value);
    if (value.is_null() || type == "ByteLevel" || type == "TemplateProcessing") return {};
    if (type == "Sequence" && value.contains("processors") && value["processors"].is_array()) {
      for (const auto& step : value["processors"]) PENT_TRY(only_adds_specials(step));
      return {};
    }
    return unsupported(fmt::format("post_processor \"{}\" is not supported", type));
  }

  Status decoder(const Json& value) const {
    const std::string type = type_of(value);
    if (type == "ByteLevel") return {};
    if (type == "Sequence" && value.contains("decoders") && value["decoders"].is_array() &&
        value["decoders"].size() == 1 && type_of(value["decoders"][0]) == "ByteLevel") {
      return {};
    }
    return unsupported(fmt::format("decoder \"{}\" is not supported", type));
  }

  Result<Bpe> model(const Json& value) {
    if (const std::string type = type_of(value); type != "BPE") {
      return unsupported(fmt::format("model \"{}\" is not supported", type));
    }
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"}) {
      if (is_set(value, key)) return unsupported(fmt::format("model.{} is not supported", key));
    }
    PENT_ASSIGN(const bool whole_words, flag(value, "ignore_merges", false));
    const auto vocab = value.find("vocab");
    const auto merges = value.find("merges");
    if (vocab == value.end() || !vocab->is_object() || vocab->empty()) return malformed("model.vocab is no object");
    if (merges == value.end() || !merges->is_array()) return malformed("model.merges is no list");
    PENT_TRY(take_vocab(*vocab));
    std::vector<Bpe::Merge> pairs;
    pairs.reserve(merges->size());
    for (size_t i = 0; i < merges->size(); ++i) PENT_TRY(take_merge((*merges)[i], i, pairs));
    return Bpe::build(bytes_of_id_, pairs, whole_words, path_);
  }

  Status take_vocab(const Json& vocab) {
    for (const auto& [token, value] : vocab.items()) {
      if (!value.is_number_integer()) return malformed(fmt::format("the id of the token \"{}\" is no integer", token));
      if (token.empty()) return malformed("has an empty token");
      PENT_TRY(claim(token, value.get<int64_t>()));
      const auto id = static_cast<size_t>(value.get<int64_t>());
      id_of_token_.emplace(token, static_cast<int32_t>(id));
      if (auto bytes = bytes_of_token(token)) {
        text_of_id_[id] = *bytes;
        bytes_of_id_[id] = std::move(*bytes);
      }
    }
    return {};
  }

  // Gives `id` to a token that had none.
  Status claim(const std::string& token, int64_t id) {
    if (id < 0 || id > kMaxTokenId) {
      return malformed(fmt::format("the token \"{}\" has id {}, ids go from 0 to {}", token, id, kMaxTokenId));
    }
    const auto i = static_cast<size_t>(id);
    if (i >= text_of_id_.size()) {
      text_of_id_.resize(i + 1);
      bytes_of_id_.resize(i + 1);
    }
    if (!text_of_id_[i].empty()) return malformed(fmt::format("two tokens have id {}", id));
    text_of_id_[i] = token;
    return {};
  }

  Status take_merge(const Json& value, size_t index, std::vector<Bpe::Merge>& pairs) const {
    std::string left, right;
    if (value.is_string()) {
      const auto& text = value.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
        left = text.substr(0, space);
        right = text.substr(space + 1);
      }
    } else if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
      left = value[0].get<std::string>();
      right = value[1].get<std::string>();
    }
    if (left.empty() || right.empty()) return malformed(fmt::format("merge {} is no pair of tokens", index));
    const auto a = id_of_token_.find(left), b = id_of_token_.find(right), ab = id_of_token_.find(left + right);
    for (const auto& [found, token] : {std::pair(a, left), std::pair(b, right), std::pair(ab, left + right)}) {
      if (found == id_of_token_.end()) {
        return malformed(fmt::format("merge {} needs the token \"{}\", which model.vocab lacks", index, token));
      }
    }
    pairs.push_back({a->second, b->second, ab->second});
    return {};
  }

  Status added_tokens(const Json& list) {
    if (list.is_null()) return {};
    if (!list.is_array()) return malformed("added_tokens is no list");
    std::unordered_set<std::string> contents;
    for (const auto& value : list) {
      if (!value.is_object() || !value.contains("content") || !value["content"].is_string() || !value.contains("id") ||
          !value["id"].is_number_integer()) {
        return malformed("an added token lacks its id or content");
      }
      AddedToken token;
      token.content = value["content"].get<std::string>();
      if (token.content.empty() || token.content.size() > AddedTokenMatcher::kMaxBytes) {
        return unsupported(fmt::format("an added token has {} bytes, supported are 1 to {}", token.content.size(),
                                       AddedTokenMatcher::kMaxBytes));
      }
      for (const char* key : {"lstrip", "rstrip", "single_word"}) {
        if (is_set(value, key)) {
          return unsupported(fmt::format("{} of the added token \"{}\" is not supported", key, token.content));
        }
      }
      PENT_ASSIGN(token.special, flag(value, "special", false));
      PENT_ASSIGN(token.normalized, flag(value, "normalized", true));
      const int64_t id = value["id"].get<int64_t>();
      if (const auto known = id_of_token_.find(token.content); known == id_of_token_.end()) {
        PENT_TRY(claim(token.content, id));
      } else if (known->second != id) {
        return malformed(fmt::format("the token \"{}\" has id {} in added_tokens and {} in model.vocab", token.content,
                                     id, known->second));
      }
      token.id = static_cast<int32_t>(id);
      text_of_id_[static_cast<size_t>(id)] = token.content;
      // Two tokens that are searched in the same text and look the same there.
      std::string looks;
      if (!token.normalized || !nfc_ || !normalize_nfc(token.content, looks)) looks = token.content;
      if (!contents.insert((token.normalized ? "n" : "r") + looks).second) {
        return malformed(fmt::format("the added token \"{}\" stands twice", token.content));
      }
      added_.push_back(std::move(token));
    }
    return {};
  }

  const std::string& path_;
  bool nfc_ = false;
  bool byte_level_ = false;
  std::vector<SplitStage> stages_;
  std::vector<std::string> text_of_id_;                   // what an id writes
  std::vector<std::string> bytes_of_id_;                  // "" where no text leads to the id by merges
  std::unordered_map<std::string, int32_t> id_of_token_;  // as the file writes them
  std::vector<AddedToken> added_;
};

}  // namespace

Result<TokenizerParts> parse_tokenizer_json(const std::string& bytes, const std::string& path) {
  auto json = parse_json(bytes, path);
  if (!json.ok()) {
    Error error = json.take_error();
    error.code = ErrorCode::tokenizer_malformed;
    return error;
  }
  return Reader(path).read(*json);
}

}  // namespace penteract::data
