#include "penteract/checkpoint/tensor_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penteract::checkpoint {
namespace {

using ::testing::HasSubstr;
using topology::Slice;

CatalogPiece piece(const std::string& tensor, const std::vector<int64_t>& shape, const Slice& slice,
                   Dtype dtype = Dtype::f32) {
  CatalogPiece p;
  p.tensor = tensor;
  p.dtype = dtype;
  p.global_shape = shape;
  p.slice = slice;
  return p;
}

std::vector<Catalog> two_ranks(std::vector<CatalogPiece> first, std::vector<CatalogPiece> second) {
  std::vector<Catalog> catalogs(2);
  catalogs[1].rank = 1;
  catalogs[0].pieces = std::move(first);
  catalogs[1].pieces = std::move(second);
  return catalogs;
}

TEST(TensorIndex, GathersThePiecesOfAllRanks) {
  const auto catalogs =
      two_ranks({piece("a", {4}, {{0}, {2}}), piece("b", {1}, {{0}, {1}})}, {piece("a", {4}, {{2}, {2}})});
  const auto index = index_tensors(catalogs);
  ASSERT_TRUE(index.ok());
  ASSERT_EQ(index->size(), 2u);
  EXPECT_EQ(index->at("a").pieces.size(), 2u);
  EXPECT_EQ(index->at("a").pieces[1].catalog, 1u);
  EXPECT_TRUE(check_cover(*index, catalogs).ok());
}

TEST(TensorIndex, RanksThatDisagreeAboutATensorAreNamed) {
  for (const CatalogPiece& other : {piece("a", {5}, {{2}, {2}}), piece("a", {4}, {{2}, {2}}, Dtype::bf16)}) {
    const auto index = index_tensors(two_ranks({piece("a", {4}, {{0}, {2}})}, {other}));
    ASSERT_FALSE(index.ok());
    EXPECT_EQ(index.error().code, ErrorCode::checkpoint_malformed);
    EXPECT_EQ(index.error().culprit, "tensor a");
    EXPECT_THAT(index.error().what, HasSubstr("rank 1 says"));
  }
}

TEST(CheckCover, EachElementOnce) {
  const Slice whole = Slice::whole({4, 6});
  const std::vector<Slice> good = {{{0, 0}, {2, 6}}, {{2, 0}, {2, 3}}, {{2, 3}, {2, 3}}};
  EXPECT_TRUE(check_cover("t", whole, good).ok());
  EXPECT_TRUE(check_cover("t", Slice{{1, 1}, {2, 4}}, good).ok());  // what is wanted need not be the whole
  for (size_t lost = 0; lost < good.size(); ++lost) {
    auto pieces = good;
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(lost));
    EXPECT_EQ(check_cover("t", whole, pieces).error().code, ErrorCode::checkpoint_incomplete) << lost;
  }
  for (const Slice& twice : {Slice{{3, 5}, {1, 1}}, Slice{{0, 0}, {1, 1}}, Slice{{1, 2}, {2, 2}}}) {
    auto pieces = good;
    pieces.push_back(twice);
    EXPECT_EQ(check_cover("t", whole, pieces).error().code, ErrorCode::checkpoint_malformed) << twice.to_string();
  }
  // One twice and one absent: the number of elements alone would be right.
  EXPECT_FALSE(check_cover("t", whole, {good[0], good[0], good[1], good[2]}).ok());
  EXPECT_FALSE(check_cover("t", Slice::whole({2, 2}), {{{0, 0}, {1, 2}}, {{0, 0}, {1, 2}}}).ok());
  EXPECT_TRUE(check_cover("scalar", Slice::whole({}), {Slice::whole({})}).ok());
  EXPECT_FALSE(check_cover("scalar", Slice::whole({}), {}).ok());
}

}  // namespace
}  // namespace penteract::checkpoint
