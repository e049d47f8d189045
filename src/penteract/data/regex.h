// The regular expressions of tokenizer files: written for Oniguruma (what Hugging Face runs), run by PCRE2.
// Only what means the same in both is accepted; anything else is refused by name, never approximated.
// Characters assigned after the Unicode version of the installed PCRE2 count as unassigned.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "penteract/base/result.h"

namespace penteract::data {

// The PCRE2 pattern (UTF, UCP) that matches what `pattern` matches in Oniguruma's Ruby syntax.
// Accepted: literals, classes without nesting, groups (?: ?i: ?= ?! ?<= ?<!), alternation, quantifiers, \s \S \d \D
// \p{general category}, \r \n \t, \uHHHH, \x{H}, escaped punctuation. Error: tokenizer_unsupported.
Result<std::string> translate_pattern(std::string_view pattern, const std::string& culprit);

// What one thread needs to match: match data, limits, stack of compiled code.
class MatchScratch {
 public:
  MatchScratch();
  ~MatchScratch();
  MatchScratch(const MatchScratch&) = delete;
  MatchScratch& operator=(const MatchScratch&) = delete;

 private:
  friend class Regex;
  struct State;
  std::unique_ptr<State> state_;
};

// Immutable after compile; shared by threads that each bring a MatchScratch.
class Regex {
 public:
  // Errors: tokenizer_unsupported, also for patterns that can match nothing at all (they would not advance).
  static Result<Regex> compile(std::string_view pattern, const std::string& culprit);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // The leftmost match at or after `from`, [begin, end). Work a match is bounded (`limit`), whatever the pattern.
  // REQUIRES: subject valid UTF-8, from at a character.
  enum class Found { yes, no, limit };
  Found find(MatchScratch& scratch, std::string_view subject, size_t from, size_t& begin, size_t& end) const;

 private:
  struct Code;
  explicit Regex(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

}  // namespace penteract::data
