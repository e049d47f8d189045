// Counter-based random numbers: a value is a pure function of (key, counter), so every layout draws the same.
// Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.
// Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace penteract {

// Ten rounds of Philox4x32.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// The Philox key of a purpose: xxh3-64 of the text, seeded with `seed`. One (seed, purpose), one stream.
std::array<uint32_t, 2> philox_key(uint64_t seed, std::string_view purpose);

// out[i] = standard normal number of global element first + i in the stream of `key` (Box-Muller in double:
// the elements 2j and 2j+1 come from counter j). Any split of a range gives the same values.
void normal_range(std::array<uint32_t, 2> key, int64_t first, int64_t count, double* out);

// A keyed bijection of [0, n): four Feistel rounds over the next even power of two, walked until inside.
// n >= 1, 0 <= i < n. Used to visit n windows in a shuffled order without a shuffle file.
uint64_t permute_index(std::array<uint32_t, 2> key, uint64_t n, uint64_t i);

}  // namespace penteract
