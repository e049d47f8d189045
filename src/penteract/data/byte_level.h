// The byte-level alphabet of GPT-2: every byte as a printable character (openai/gpt-2, encoder.py, bytes_to_unicode).
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penteract::data {

// The bytes that a token of a byte-level vocabulary stands for; nothing when a character is outside the alphabet
// (then no text produces the token but as an added one). REQUIRES: token valid UTF-8.
std::optional<std::string> bytes_of_token(std::string_view token);

}  // namespace penteract::data
