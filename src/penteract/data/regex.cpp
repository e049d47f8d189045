#define PCRE2_CODE_UNIT_WIDTH 8
#include "penteract/data/regex.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>

#include "penteract/base/check.h"

namespace penteract::data {
namespace {

constexpr uint32_t kMaxNesting = 32;
constexpr size_t kMaxPatternBytes = 1 << 16;
constexpr uint32_t kHeapLimitKib = 1 << 16;
// A run of n characters may be given back one by one: steps must grow with the text, not beyond a few a byte.
constexpr uint64_t kMatchSteps = 1'000'000;
constexpr uint64_t kMatchStepsPerByte = 8;

}  // namespace

struct MatchScratch::State {
  pcre2_match_context* context = nullptr;
  pcre2_match_data* data = nullptr;
  pcre2_jit_stack* stack = nullptr;
  size_t limit_for_bytes = 0;
};

MatchScratch::MatchScratch() : state_(new State) {
  state_->context = pcre2_match_context_create(nullptr);
  state_->data = pcre2_match_data_create(1, nullptr);
  PENT_CHECK(state_->context != nullptr && state_->data != nullptr, "no memory for a match");
  state_->stack = pcre2_jit_stack_create(32 << 10, 16 << 20, nullptr);  // null where PCRE2 was built without it
  if (state_->stack != nullptr) pcre2_jit_stack_assign(state_->context, nullptr, state_->stack);
  pcre2_set_heap_limit(state_->context, kHeapLimitKib);
  pcre2_set_match_limit(state_->context, kMatchSteps);
  pcre2_set_depth_limit(state_->context, kMatchSteps);
}

MatchScratch::~MatchScratch() {
  pcre2_jit_stack_free(state_->stack);
  pcre2_match_data_free(state_->data);
  pcre2_match_context_free(state_->context);
}

struct Regex::Code {
  pcre2_code* code = nullptr;
  bool jit = false;
  ~Code() { pcre2_code_free(code); }
};

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern, const std::string& culprit) {
  if (pattern.size() > kMaxPatternBytes) {
    return Error{ErrorCode::tokenizer_unsupported, fmt::format("a pattern has {} bytes", pattern.size()), culprit,
                 fmt::format("at most {} are read", kMaxPatternBytes)};
  }
  PENT_ASSIGN(const std::string translated, translate_pattern(pattern, culprit));
  auto* context = pcre2_compile_context_create(nullptr);
  PENT_CHECK(context != nullptr, "no memory for a pattern");
  pcre2_set_parens_nest_limit(context, 2 * kMaxNesting);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  int code_of_error = 0;
  size_t offset = 0;
  auto code = std::make_unique<Code>();
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code_of_error, &offset, context);
  pcre2_compile_context_free(context);
  if (code->code == nullptr) {
    PCRE2_UCHAR text[256] = {0};
    pcre2_get_error_message(code_of_error, text, sizeof text);
    return Error{ErrorCode::tokenizer_unsupported,
                 fmt::format("the pattern \"{}\" is refused by PCRE2: {}", pattern, reinterpret_cast<char*>(text)),
                 culprit, "use a tokenizer file with patterns that PCRE2 can read"};
  }
  uint32_t match_empty = 0;
  pcre2_pattern_info(code->code, PCRE2_INFO_MATCHEMPTY, &match_empty);
  if (match_empty != 0) {
    return Error{ErrorCode::tokenizer_unsupported, fmt::format("the pattern \"{}\" can match nothing", pattern),
                 culprit, "patterns that match the empty text are not supported"};
  }
  code->jit = pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE) == 0;
  return Regex(std::move(code));
}

Regex::Found Regex::find(MatchScratch& scratch, std::string_view subject, size_t from, size_t& begin,
                         size_t& end) const {
  auto& s = *scratch.state_;
  if (subject.size() > s.limit_for_bytes) {
    const auto steps = std::min<uint64_t>(kMatchSteps + kMatchStepsPerByte * subject.size(), UINT32_MAX);
    pcre2_set_match_limit(s.context, static_cast<uint32_t>(steps));
    pcre2_set_depth_limit(s.context, static_cast<uint32_t>(steps));
    s.limit_for_bytes = subject.size();
  }
  const auto* text = reinterpret_cast<PCRE2_SPTR>(subject.data());
  const int rc = code_->jit
                     ? pcre2_jit_match(code_->code, text, subject.size(), from, PCRE2_NO_UTF_CHECK, s.data, s.context)
                     : pcre2_match(code_->code, text, subject.size(), from, PCRE2_NO_UTF_CHECK, s.data, s.context);
  if (rc == PCRE2_ERROR_NOMATCH) return Found::no;
  if (rc < 0) return Found::limit;
  const size_t* offsets = pcre2_get_ovector_pointer(s.data);
  begin = offsets[0];
  end = offsets[1];
  PENT_CHECK(begin >= from && end > begin && end <= subject.size(), "match {} to {} from {}", begin, end, from);
  return Found::yes;
}

}  // namespace penteract::data
