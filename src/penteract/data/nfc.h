// Unicode normal form C (UAX #15) of Unicode 9, as Hugging Face `tokenizers` has it: characters assigned later stay
// as they are. Tables: utf8proc. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace penteract::data {

// Writes NFC(text) to `out`. Text that is plainly in the form already is found without the tables, and `out` stays
// empty: false = text is its own NFC, nothing was written. Linear time but for sorting runs of combining marks.
// REQUIRES: text valid UTF-8.
bool normalize_nfc(std::string_view text, std::string& out);

// True where the character is unchanged by NFC, never combines with what stands before it, and has combining class
// 0, as a table-free test knows it: a run of such characters is in NFC. False says nothing.
bool plainly_nfc(char32_t code_point);

}  // namespace penteract::data
