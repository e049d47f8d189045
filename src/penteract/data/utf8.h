// UTF-8 as the tokenizers see it. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penteract::data {

// The length of the longest valid UTF-8 prefix (Unicode 3.9, table 3-7: no surrogates, no overlong forms).
size_t valid_utf8_prefix(std::string_view bytes);

// Invalid UTF-8 becomes U+FFFD, one for each maximal ill-formed part (Unicode 3.9, "U+FFFD substitution"): what
// Hugging Face sees after bytes.decode("utf-8", "replace") in Python or from_utf8_lossy in Rust.
std::string repair_utf8(std::string_view bytes);

// The code point that starts at text[i], and i moved behind it. REQUIRES: text valid UTF-8, i at a character.
char32_t next_code_point(std::string_view text, size_t& i);

void append_utf8(char32_t code_point, std::string& out);

}  // namespace penteract::data
