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

std::string_view trim(std::string_view text);

}  // namespace penteract
