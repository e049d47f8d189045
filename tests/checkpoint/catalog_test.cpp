#include "penteract/checkpoint/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penteract/base/hash.h"
#include "penteract/checkpoint/tensor_index.h"

namespace penteract::checkpoint {
namespace {

using ::testing::HasSubstr;

const std::string kSum = "00112233445566778899aabbccddeeff";

Catalog sample() {
  Catalog catalog{10, 1, 4, {{"rank-00001.safetensors", 200, 64, kSum}}, {}};
  catalog.pieces.push_back({"master.a", Dtype::f32, {4, 6}, {{1, 2}, {3, 4}}, 0, 64, 48, kSum});
  catalog.pieces.push_back({"count", Dtype::i64, {}, {{}, {}}, 0, 112, 8, kSum});
  return catalog;
}

std::string refusal(const Catalog& catalog) {
  const auto result = decode_catalog(encode_catalog(catalog), "x.catalog");
  if (result.ok()) return "accepted";
  EXPECT_EQ(result.error().code, ErrorCode::checkpoint_malformed);
  return result.error().message();
}

TEST(Catalog, RoundTrip) {
  const auto back = decode_catalog(encode_catalog(sample()), "x.catalog");
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->step, 10);
  EXPECT_EQ(back->rank, 1);
  EXPECT_EQ(back->num_ranks, 4);
  EXPECT_EQ(back->files[0].header_checksum, kSum);
  EXPECT_EQ(back->files[0].size_bytes, 200u);
  const CatalogPiece& piece = back->pieces[0];
  EXPECT_EQ(piece.name(), "master.a[1:4, 2:6]");
  EXPECT_EQ(piece.dtype, Dtype::f32);
  EXPECT_EQ(piece.global_shape, (std::vector<int64_t>{4, 6}));
  EXPECT_EQ(piece.offset_bytes, 64u);
  EXPECT_EQ(piece.checksum, kSum);
  EXPECT_EQ(back->pieces[1].name(), "count[]");
}

// The bytes of docs/formats/checkpoint.md, so that a reader written from the page reads them.
TEST(Catalog, BytesAreThoseOfTheFormatPage) {
  const std::string bytes = encode_catalog(sample());
  EXPECT_EQ(bytes.substr(0, 8), "PENTCAT\n");
  EXPECT_EQ(bytes.substr(8, 28), std::string("\1\0\0\0\1\0\0\0\4\0\0\0\x0a\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0", 28));
  EXPECT_EQ(bytes.substr(36, 24), std::string("\x16\0rank-00001.safetensors", 24));
  EXPECT_EQ(bytes.substr(60, 16), std::string("\xc8\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(bytes.substr(76, 2), std::string("\x00\x11", 2));
  EXPECT_EQ(bytes.substr(92, 12), std::string("\x08\0master.a\2\2", 12));
  EXPECT_EQ(bytes.size(), 92u + (12 + 48 + 36) + (2 + 5 + 2 + 36) + 16);
}

TEST(Catalog, EveryFlippedByteAndEveryCutIsCaught) {
  const std::string bytes = encode_catalog(sample());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(decode_catalog(changed, "x").ok()) << i;
    EXPECT_FALSE(decode_catalog(bytes.substr(0, i), "x").ok()) << i;
  }
  EXPECT_FALSE(decode_catalog(bytes + '\0', "x").ok());
  std::string other_version = bytes;
  other_version[8] = 9;
  EXPECT_THAT(decode_catalog(other_version, "x").error().message(), HasSubstr("version 9"));
}

// A catalog whose checksum is right may still be hostile.
TEST(Catalog, RefusesNumbersThatDoNotFit) {
  Catalog c = sample();
  EXPECT_EQ(refusal(c), "accepted");
  c.rank = 4;
  EXPECT_THAT(refusal(c), HasSubstr("rank 4 of 4"));
  c = sample();
  c.step = -1;
  EXPECT_THAT(refusal(c), HasSubstr("step -1"));
  c = sample();
  c.files[0].name = "../rank-00001.safetensors";
  EXPECT_THAT(refusal(c), HasSubstr("names the file"));
  c = sample();
  c.pieces[0].slice.offset[1] = 3;
  EXPECT_THAT(refusal(c), HasSubstr("not inside its tensor of shape [4, 6]"));
  c = sample();
  c.pieces[0].slice.offset[0] = INT64_MAX;
  EXPECT_THAT(refusal(c), HasSubstr("not inside"));
  c = sample();
  c.pieces[0].slice.size[0] = 0;
  EXPECT_THAT(refusal(c), HasSubstr("not inside"));
  c = sample();
  c.pieces[0].global_shape = {INT64_MAX, INT64_MAX};
  EXPECT_THAT(refusal(c), HasSubstr("impossible shape"));
  c = sample();
  c.pieces[0].size_bytes = 44;
  EXPECT_THAT(refusal(c), HasSubstr("44 bytes"));
  c = sample();
  c.pieces[0].file = 1;
  EXPECT_THAT(refusal(c), HasSubstr("file 1 of 1"));
  c = sample();
  c.pieces[0].offset_bytes = UINT64_MAX - 8;
  EXPECT_THAT(refusal(c), HasSubstr("lies outside"));
  c = sample();
  c.pieces[0].offset_bytes = 0;  // inside the header
  EXPECT_THAT(refusal(c), HasSubstr("lies outside"));
  // A count far beyond the bytes ends at the bytes, without allocating for it.
  std::string bytes = encode_catalog(sample());
  bytes.replace(32, 4, "\xff\xff\xff\x7f");
  bytes.resize(bytes.size() - 16);
  const std::string sum = hash128_hex(bytes.data(), bytes.size());
  for (size_t i = 0; i < sum.size(); i += 2) bytes += static_cast<char>(std::stoi(sum.substr(i, 2), nullptr, 16));
  EXPECT_THAT(decode_catalog(bytes, "x").error().message(), HasSubstr("ends before its last piece"));
}

TEST(TensorIndex, PartsThatDisagreeAreNamed) {
  Catalog other = sample();
  other.rank = 2;
  other.pieces[0].global_shape = {4, 7};
  const auto index = index_tensors({sample(), other});
  ASSERT_FALSE(index.ok());
  EXPECT_THAT(index.error().message(), HasSubstr("tensor master.a"));
  EXPECT_THAT(index.error().message(), HasSubstr("rank 1 says F32 [4, 6], rank 2 says F32 [4, 7]"));
}

TEST(TensorIndex, CoverIsExactlyOnce) {
  const topology::Slice whole{{0, 0}, {4, 4}};
  const topology::Slice top{{0, 0}, {2, 4}}, left{{2, 0}, {2, 1}}, right{{2, 1}, {2, 3}};
  EXPECT_TRUE(check_cover("t", whole, {right, top, left}).ok());
  EXPECT_TRUE(check_cover("t", {{1, 1}, {2, 2}}, {top, left, right}).ok());
  EXPECT_TRUE(check_cover("t", {{}, {}}, {topology::Slice{}}).ok());
  const Status hole = check_cover("t", whole, {top, left});
  EXPECT_EQ(hole.error().code, ErrorCode::checkpoint_incomplete);
  EXPECT_THAT(hole.error().message(), HasSubstr("6 of the 16 elements"));
  // The right number of elements, but one twice and one not at all.
  const Status twice = check_cover("t", {{0, 0}, {2, 2}}, {{{0, 0}, {1, 2}}, {{0, 1}, {2, 1}}});
  EXPECT_EQ(twice.error().code, ErrorCode::checkpoint_malformed);
  EXPECT_THAT(twice.error().message(), HasSubstr("[0:1, 1:2] are stored twice"));
  EXPECT_FALSE(check_cover("t", {{}, {}}, {topology::Slice{}, topology::Slice{}}).ok());
  EXPECT_FALSE(check_cover("t", {{}, {}}, {}).ok());
}

}  // namespace
}  // namespace penteract::checkpoint
