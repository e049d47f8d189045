#include "penteract/base/rng.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "penteract/base/check.h"
#include "penteract/base/hash.h"

namespace penteract {
namespace {

std::array<double, 2> normal_pair(std::array<uint32_t, 2> key, uint64_t pair) {
  const auto r = philox4x32({static_cast<uint32_t>(pair), static_cast<uint32_t>(pair >> 32), 0, 0}, key);
  // 53-bit uniforms; the first in (0, 1] so that its logarithm is finite.
  const uint64_t a = (static_cast<uint64_t>(r[0]) << 32 | r[1]) >> 11;
  const uint64_t b = (static_cast<uint64_t>(r[2]) << 32 | r[3]) >> 11;
  const double u1 = static_cast<double>(a + 1) * 0x1p-53;
  const double u2 = static_cast<double>(b) * 0x1p-53;
  const double radius = std::sqrt(-2.0 * std::log(u1));
  const double angle = 2.0 * std::numbers::pi * u2;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = 0xD2511F53ull * c[0];
    const uint64_t p1 = 0xCD9E8D57ull * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return c;
}

std::array<uint32_t, 2> philox_key(uint64_t seed, std::string_view purpose) {
  const uint64_t h = hash64(purpose.data(), purpose.size(), seed);
  return {static_cast<uint32_t>(h), static_cast<uint32_t>(h >> 32)};
}

void normal_range(std::array<uint32_t, 2> key, int64_t first, int64_t count, double* out) {
  PENT_CHECK_GE(first, 0);
  int64_t i = first;
  const int64_t end = first + count;
  while (i < end) {
    const auto pair = normal_pair(key, static_cast<uint64_t>(i / 2));
    if (i % 2 == 0) {
      *out++ = pair[0];
      if (++i == end) break;
    }
    *out++ = pair[1];
    ++i;
  }
}

uint64_t permute_index(std::array<uint32_t, 2> key, uint64_t n, uint64_t i) {
  PENT_CHECK_LT(i, n);
  if (n <= 2) return n == 2 ? i ^ (key[0] & 1) : 0;
  const int half = (std::bit_width(n - 1) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = i >> half, right = i & mask;
    for (uint32_t round = 0; round < 4; ++round) {
      const auto f = philox4x32({static_cast<uint32_t>(right), static_cast<uint32_t>(right >> 32), round, 1}, key);
      const uint64_t next = left ^ ((static_cast<uint64_t>(f[0]) << 32 | f[1]) & mask);
      left = right;
      right = next;
    }
    i = left << half | right;
  } while (i >= n);
  return i;
}

}  // namespace penteract
