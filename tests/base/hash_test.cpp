#include "penteract/base/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace penteract {
namespace {

// Checkpoints and caches live on these numbers: the values of xxHash's own XXH3 for an empty input.
TEST(Hash, IsXxh3) {
  EXPECT_EQ(hash64("", 0), 0x2D06800538D394C2u);
  EXPECT_EQ(hash128_hex("", 0), "99aa06d3014798d86001c324468d497f");
}

TEST(Hash, AStreamOfPiecesIsTheWhole) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 31 % 251);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1024}, text.size()}) {
    Hasher128 hasher;
    for (size_t at = 0; at < text.size(); at += piece)
      hasher.update(text.data() + at, std::min(piece, text.size() - at));
    EXPECT_EQ(hasher.hex(), hash128_hex(text.data(), text.size())) << piece;
    EXPECT_EQ(hasher.hex(), hasher.hex());
  }
}

TEST(Hash, SeedAndEveryByteCount) {
  std::string text = "0123456789";
  const uint64_t before = hash64(text.data(), text.size());
  EXPECT_NE(before, hash64(text.data(), text.size(), 1));
  for (char& c : text) {
    c = static_cast<char>(c ^ 1);
    EXPECT_NE(before, hash64(text.data(), text.size()));
    c = static_cast<char>(c ^ 1);
  }
}

}  // namespace
}  // namespace penteract
