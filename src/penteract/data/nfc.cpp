#include "penteract/data/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "penteract/base/check.h"
#include "penteract/data/utf8.h"

namespace penteract::data {
namespace {

constexpr auto kDecompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

// Hugging Face normalises with the tables of Unicode 9. What was assigned later and matters to NFC (marks with a
// combining class, and blocks with pairs that compose; up to Unicode 16) are starters there that compose with nothing.
struct Range {
  char32_t first, last;
};
constexpr Range kLater[] = {
    {0x7FD, 0x7FD},     {0x897, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},
    {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x105C0, 0x105FF}, {0x10D24, 0x10D27}, {0x10D69, 0x10D6D},
    {0x10EAB, 0x10EAC}, {0x10EFC, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070},
    {0x1133B, 0x1133B}, {0x11380, 0x113FF}, {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11900, 0x1195F},
    {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42},
    {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16100, 0x1613F}, {0x16D40, 0x16D7F},
    {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
    {0x1E4EC, 0x1E4EF}, {0x1E5EE, 0x1E5EF}};

bool is_later(char32_t c) {
  const auto* range = std::lower_bound(std::begin(kLater), std::end(kLater), c,
                                       [](const Range& r, char32_t value) { return r.last < value; });
  return range != std::end(kLater) && range->first <= c;
}

// Appends NFC(run), where run has no later character. utf8proc's own decomposition sorts marks by exchange, quadratic in a hostile run: we sort.
void append_nfc(std::string_view run, std::string& out) {
  std::vector<utf8proc_int32_t> points;
  points.reserve(run.size());
  for (size_t i = 0; i < run.size();) {
    const auto c = static_cast<utf8proc_int32_t>(next_code_point(run, i));
    utf8proc_int32_t parts[8];
    int boundary = 0;
    const auto n = utf8proc_decompose_char(c, parts, 8, kDecompose, &boundary);
    PENT_CHECK(n >= 1 && n <= 8, "U+{:X} decomposes into {}", c, n);
    points.insert(points.end(), parts, parts + n);
  }
  for (size_t i = 0; i < points.size();) {
    size_t end = i;
    while (end < points.size() && combining_class(points[end]) != 0) ++end;
    std::stable_sort(points.begin() + static_cast<std::ptrdiff_t>(i), points.begin() + static_cast<std::ptrdiff_t>(end),
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    i = end + 1;
  }
  const auto n = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()), kCompose);
  PENT_CHECK(n >= 0, "utf8proc says {}", n);
  for (utf8proc_ssize_t i = 0; i < n; ++i) append_utf8(static_cast<char32_t>(points[static_cast<size_t>(i)]), out);
}

// The same for any run.
void append_nfc_between_later(std::string_view run, std::string& out) {
  size_t done = 0;
  for (size_t i = 0; i < run.size();) {
    const size_t at = i;
    if (!is_later(next_code_point(run, i))) continue;
    append_nfc(run.substr(done, at - done), out);
    out.append(run.substr(at, i - at));
    done = i;
  }
  append_nfc(run.substr(done), out);
}

// One past the run of non-ASCII characters at `i`; plain = all of it passes plainly_nfc.
size_t run_end(std::string_view text, size_t i, bool& plain) {
  plain = true;
  while (i < text.size() && (text[i] & 0x80) != 0) plain = plainly_nfc(next_code_point(text, i)) && plain;
  return i;
}

}  // namespace

bool plainly_nfc(char32_t c) {
  return c < 0x300 || (c >= 0x400 && c <= 0x482) || (c >= 0x2010 && c <= 0x2027) || (c >= 0x3001 && c <= 0x3029) ||
         (c >= 0x3041 && c <= 0x3096) || (c >= 0x309B && c <= 0x30FF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xFF01 && c <= 0xFF60) || c == 0xFFFD ||
         (c >= 0x1F300 && c <= 0x1FAFF);
}

bool normalize_nfc(std::string_view text, std::string& out) {
  out.clear();
  size_t done = 0;  // text[0, done) stands normalised in out
  // An ASCII character composes with nothing before it: a run of others, with the one ASCII character that it may
  // compose with, is normalised alone.
  for (size_t i = 0; i < text.size();) {
    if ((text[i] & 0x80) == 0) {
      ++i;
      continue;
    }
    const size_t start = i > done ? i - 1 : i;
    bool plain = true;
    const size_t end = run_end(text, i, plain);
    if (!plain) {
      out.append(text.substr(done, start - done));
      append_nfc_between_later(text.substr(start, end - start), out);
      done = end;
    }
    i = end;
  }
  if (done == 0) return false;
  out.append(text.substr(done));
  return true;
}

}  // namespace penteract::data
