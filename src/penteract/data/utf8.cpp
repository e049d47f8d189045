#include "penteract/data/utf8.h"

#include <cstring>

namespace penteract::data {
namespace {

uint8_t byte_at(std::string_view s, size_t i) { return static_cast<uint8_t>(s[i]); }

// Looks at one sequence: its length when it is well formed, else 0 with `bad` = bytes of the maximal ill-formed part.
size_t sequence_at(std::string_view s, size_t i, size_t& bad) {
  const uint8_t lead = byte_at(s, i);
  bad = 1;
  if (lead < 0x80) return 1;
  size_t length = 0;
  uint8_t low = 0x80, high = 0xBF;  // of the second byte
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  for (size_t k = 1; k < length; ++k) {
    if (i + k >= s.size() || byte_at(s, i + k) < low || byte_at(s, i + k) > high) return 0;
    ++bad;
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

}  // namespace

size_t valid_utf8_prefix(std::string_view s) {
  size_t i = 0, bad = 0;
  while (i < s.size()) {
    uint64_t word = 0;
    while (i + 8 <= s.size() && (std::memcpy(&word, s.data() + i, 8), (word & 0x8080808080808080ull) == 0)) i += 8;
    if (i == s.size()) break;
    const size_t length = sequence_at(s, i, bad);
    if (length == 0) break;
    i += length;
  }
  return i;
}

std::string repair_utf8(std::string_view s) {
  std::string out;
  out.reserve(s.size() + 16);
  while (!s.empty()) {
    const size_t good = valid_utf8_prefix(s);
    out.append(s.substr(0, good));
    s.remove_prefix(good);
    if (s.empty()) break;
    size_t bad = 0;
    sequence_at(s, 0, bad);
    out += "\xEF\xBF\xBD";
    s.remove_prefix(bad);
  }
  return out;
}

char32_t next_code_point(std::string_view s, size_t& i) {
  const uint8_t lead = byte_at(s, i++);
  if (lead < 0x80) return lead;
  const int more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  char32_t c = lead & (0x3F >> more);
  for (int k = 0; k < more; ++k) c = c << 6 | (byte_at(s, i++) & 0x3F);
  return c;
}

void append_utf8(char32_t c, std::string& out) {
  const auto put = [&](char32_t b) { out.push_back(static_cast<char>(b)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

}  // namespace penteract::data
