#include "penteract/data/byte_level.h"

#include <array>
#include <cstdint>

#include "penteract/data/utf8.h"

namespace penteract::data {
namespace {

// byte_of[c] for the characters below 324, -1 where c is no letter of the alphabet.
std::array<int16_t, 324> make_byte_of() {
  std::array<int16_t, 324> byte_of{};
  byte_of.fill(-1);
  int next = 256;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    byte_of[static_cast<size_t>(printable ? b : next++)] = static_cast<int16_t>(b);
  }
  return byte_of;
}

}  // namespace

std::optional<std::string> bytes_of_token(std::string_view token) {
  static const auto byte_of = make_byte_of();
  std::string bytes;
  for (size_t i = 0; i < token.size();) {
    const char32_t c = next_code_point(token, i);
    if (c >= byte_of.size() || byte_of[c] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte_of[c]));
  }
  return bytes;
}

}  // namespace penteract::data
