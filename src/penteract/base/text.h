// Small text helpers for messages: nearest key, units, tables. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penteract {

// The candidate with the least edit distance to `word`, or "" when none is near (more than a third differs).
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

// "1.9 GiB", "312 KiB": three figures, binary units.
std::string format_bytes(uint64_t bytes);

// "2 h 05 min", "1 min 40 s", "9 s".
std::string format_seconds(double seconds);

// Rows of cells as left-aligned columns two spaces apart; the first row is the header, underlined.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

// Pieces between `separator`; empty pieces are kept.
std::vector<std::string> split_text(std::string_view text, char separator);

// The text with everything that could steer a terminal (control characters but line feed and tab, C1, DEL, bytes that
// are no UTF-8) written as \xNN: for what comes out of files.
std::string printable(std::string_view text);

// The text as one printable line of at most max_bytes, in quotes: a value of a file inside a message.
std::string quote_line(std::string_view text, size_t max_bytes = 80);

std::string_view trim(std::string_view text);

}  // namespace penteract
