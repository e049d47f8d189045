// translate_pattern of regex.h: a scanner that knows what Oniguruma and PCRE2 agree on.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "penteract/data/regex.h"
#include "penteract/data/utf8.h"

namespace penteract::data {
namespace {

constexpr size_t kMaxNesting = 32;
constexpr int kMaxRepeat = 1000;
// Oniguruma's \s; PCRE2's own has U+180E besides.
constexpr std::string_view kSpaceItems = "\\x09-\\x0D\\x{85}\\p{Z}";
constexpr std::array<std::string_view, 37> kCategories = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe",
    "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Co", "Cs", "Cn"};
// Two letters that one character folds to (as U+00DF to ss): only Oniguruma matches that character.
constexpr std::array<std::string_view, 5> kFoldsToTwo = {"ss", "st", "ff", "fi", "fl"};

class Scanner {
 public:
  Scanner(std::string_view in, const std::string& culprit) : in_(in), culprit_(culprit) {}

  Result<std::string> run() {
    while (i_ < in_.size()) PENT_TRY(item());
    if (!caseless_.empty()) return refuse("a group that does not end");
    return std::move(out_);
  }

 private:
  Error refuse(std::string_view what) const {
    return {ErrorCode::tokenizer_unsupported,
            fmt::format("the pattern \"{}\" has {} at byte {}", in_, what, std::min(i_, in_.size())), culprit_,
            "this piece of regular expression syntax is not supported; please report the tokenizer"};
  }
  bool at(std::string_view s) const { return in_.substr(i_).starts_with(s); }
  bool caseless() const { return !caseless_.empty() && caseless_.back(); }
  void copy(size_t n) {
    out_ += in_.substr(i_, n);
    i_ += n;
  }

  Status item() {
    const char c = in_[i_];
    if (c != '\\' && std::isalpha(static_cast<unsigned char>(c)) == 0) last_letter_ = 0;
    switch (c) {
      case '\\': return escape(false);
      case '[': return char_class();
      case '(': return open_group();
      case ')':
        if (caseless_.empty()) return refuse("a ) without (");
        caseless_.pop_back();
        copy(1);
        return {};
      case '|':
      case '.': copy(1); return {};
      case '?':
      case '*':
      case '+':
        copy(1);
        if (at("?") || at("+")) copy(1);
        return {};
      case '{': return repeat();
      case '^':
      case '$':
      case ']':
      case '}': return refuse(fmt::format("a bare {}", c));
      default: return literal();
    }
  }

  Status literal() {
    const size_t start = i_;
    const char32_t c = next_code_point(in_, i_);
    if (caseless()) {
      if (c >= 0x80) return refuse("a character outside ASCII under (?i:");
      const char low = static_cast<char>(std::tolower(static_cast<int>(c)));
      const std::array<char, 2> two = {last_letter_, low};
      const std::string_view pair(two.data(), two.size());
      if (std::find(kFoldsToTwo.begin(), kFoldsToTwo.end(), pair) != kFoldsToTwo.end()) {
        return refuse(fmt::format("\"{}\" under (?i:, to which a single character folds,", pair));
      }
      last_letter_ = low;
    }
    out_ += in_.substr(start, i_ - start);
    return {};
  }

  Status open_group() {
    if (caseless_.size() >= kMaxNesting) return refuse("groups nested too deeply");
    bool fold = caseless();
    for (std::string_view head : {"(?i:", "(?:", "(?=", "(?!", "(?<=", "(?<!"}) {
      if (!at(head)) continue;
      caseless_.push_back(fold || head == "(?i:");
      copy(head.size());
      return {};
    }
    if (at("(?") || at("(*")) return refuse("a group of a kind that is not supported");
    caseless_.push_back(fold);
    out_ += "(?:";
    ++i_;
    return {};
  }

  // {n}, {n,}, {n,m}; what follows it ({n}? and {n}+) differs between the two languages.
  Status repeat() {
    const size_t close = in_.find('}', i_);
    const auto body = in_.substr(i_ + 1, close == std::string_view::npos ? 0 : close - i_ - 1);
    int numbers[2] = {-1, -1};
    int k = 0;
    for (const char c : body) {
      if (c == ',' && k == 0 && numbers[0] >= 0) {
        k = 1;
      } else if (c >= '0' && c <= '9' && numbers[k] <= kMaxRepeat) {
        numbers[k] = std::max(numbers[k], 0) * 10 + (c - '0');
      } else {
        return refuse("a { that is no repetition");
      }
    }
    if (numbers[0] < 0 || numbers[0] > kMaxRepeat || numbers[1] > kMaxRepeat ||
        (numbers[1] >= 0 && numbers[1] < numbers[0])) {
      return refuse("a repetition out of bounds");
    }
    copy(body.size() + 2);
    if (at("?") || at("+") || at("*") || at("{")) return refuse("a repetition of a repetition");
    return {};
  }

  Status escape(bool in_class) {
    last_letter_ = 0;
    if (i_ + 1 >= in_.size()) return refuse("a \\ at its end");
    const char c = in_[i_ + 1];
    switch (c) {
      case 's':
      case 'S':
        if (in_class && c == 'S') return refuse("\\S inside a class");
        out_ += in_class ? std::string(kSpaceItems) : fmt::format("[{}{}]", c == 'S' ? "^" : "", kSpaceItems);
        i_ += 2;
        return {};
      case 'd':
      case 'D':
      case 'r':
      case 'n':
      case 't': copy(2); return {};
      case 'p':
      case 'P': {
        const size_t close = in_.find('}', i_);
        if (i_ + 2 >= in_.size() || in_[i_ + 2] != '{' || close == std::string_view::npos) return refuse("a bare \\p");
        const auto name = in_.substr(i_ + 3, close - i_ - 3);
        if (std::find(kCategories.begin(), kCategories.end(), name) == kCategories.end()) {
          return refuse(fmt::format("\\{}{{{}}}", c, name));
        }
        if (caseless()) return refuse("\\p under (?i:");
        copy(close + 1 - i_);
        return {};
      }
      case 'u': return code_point(i_ + 2, 4, 0);
      case 'x': {
        const size_t close = in_.find('}', i_);
        if (i_ + 2 >= in_.size() || in_[i_ + 2] != '{' || close == std::string_view::npos)
          return refuse("\\x of a byte");
        return code_point(i_ + 3, close - i_ - 3, 1);
      }
      default:
        if (c < 0x20 || c > 0x7E || std::isalnum(static_cast<unsigned char>(c)) != 0) {
          return refuse(fmt::format("\\{}", c));
        }
        copy(2);
        return {};
    }
  }

  // `digits` hexadecimal digits at `start`, and `closing` bytes behind them.
  Status code_point(size_t start, size_t digits, size_t closing) {
    if (digits < 1 || digits > 6 || start + digits > in_.size()) return refuse("a malformed code point");
    uint32_t value = 0;
    for (const char c : in_.substr(start, digits)) {
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0) return refuse("a malformed code point");
      value = value * 16 + static_cast<uint32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return refuse("a code point that does not exist");
    if (caseless() && value >= 0x80) return refuse("a character outside ASCII under (?i:");
    out_ += fmt::format("\\x{{{:x}}}", value);
    i_ = start + digits + closing;
    return {};
  }

  Status char_class() {
    copy(1);
    if (at("^")) copy(1);
    bool first = true, after_set = false;
    while (!at("]")) {
      if (i_ >= in_.size()) return refuse("a class that does not end");
      if (at("[") || at("&&")) return refuse("a class inside a class");
      if (at("-") && !at("-]") && (after_set || first)) return refuse("a - in a place where the languages differ");
      if (at("\\")) {
        after_set = i_ + 1 < in_.size() && std::string_view("sdDpP").find(in_[i_ + 1]) != std::string_view::npos;
        PENT_TRY(escape(true));
      } else {
        after_set = false;
        const size_t start = i_;
        if (next_code_point(in_, i_) >= 0x80 && caseless()) return refuse("a character outside ASCII under (?i:");
        out_ += in_.substr(start, i_ - start);
      }
      first = false;
    }
    if (first) return refuse("an empty class");
    last_letter_ = 0;
    copy(1);
    return {};
  }

  std::string_view in_;
  const std::string& culprit_;
  std::string out_;
  std::vector<bool> caseless_;  // of the open groups
  size_t i_ = 0;
  char last_letter_ = 0;  // the literal just before, under (?i:
};

}  // namespace

Result<std::string> translate_pattern(std::string_view pattern, const std::string& culprit) {
  if (valid_utf8_prefix(pattern) != pattern.size()) {
    return Error{ErrorCode::tokenizer_malformed, "a pattern is not valid UTF-8", culprit,
                 "the file is damaged: fetch or make it again"};
  }
  return Scanner(pattern, culprit).run();
}

}  // namespace penteract::data
