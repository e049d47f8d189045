#include "penteract/data/indexed_dataset.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "data/temp_folder.h"

namespace penteract::data {
namespace {

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// An .idx written by hand, field by field.
struct Index {
  uint64_t version = 1;
  uint8_t dtype = 8;
  std::vector<int32_t> lengths;
  std::vector<int64_t> offsets;
  std::vector<int64_t> documents;
  uint64_t sequences_named = UINT64_MAX;

  std::string bytes() const {
    std::string out("MMIDIDX\0\0", 9);
    put(out, version);
    put(out, dtype);
    put(out, sequences_named == UINT64_MAX ? uint64_t{lengths.size()} : sequences_named);
    put(out, uint64_t{documents.size()});
    for (const auto x : lengths) put(out, x);
    for (const auto x : offsets) put(out, x);
    for (const auto x : documents) put(out, x);
    return out;
  }
};

std::string u16_bytes(const std::vector<uint16_t>& ids) {
  std::string out;
  for (const auto id : ids) put(out, id);
  return out;
}

std::vector<int32_t> tokens(const IndexedDataset& d, int64_t first, int64_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  or_throw(d.read_tokens(first, count, ids.data()));
  return ids;
}

TEST(IndexedDataset, WritesTheFormatOfMegatron) {
  const TempFolder folder;
  auto writer = or_throw(IndexedDatasetWriter::create(folder.path("d"), TokenDtype::u16));
  or_throw(writer->add_document(std::vector<int32_t>{5, 6, 65499}));
  or_throw(writer->add_document(std::vector<int32_t>{7}));
  or_throw(writer->finish());
  EXPECT_EQ(or_throw(read_file(folder.path("d.bin"))), u16_bytes({5, 6, 65499, 7}));
  EXPECT_EQ(or_throw(read_file(folder.path("d.idx"))), (Index{1, 8, {3, 1}, {0, 6}, {0, 1, 2}}.bytes()));
  EXPECT_EQ(TempFolder::num_files(folder.path("")), 2u);
  EXPECT_EQ(token_dtype_for(65499), TokenDtype::u16);
  EXPECT_EQ(token_dtype_for(65500), TokenDtype::i32);
}

TEST(IndexedDataset, ReadsBackEveryType) {
  for (const auto dtype :
       {TokenDtype::u8, TokenDtype::i8, TokenDtype::i16, TokenDtype::i32, TokenDtype::i64, TokenDtype::u16}) {
    const TempFolder folder;
    auto writer = or_throw(IndexedDatasetWriter::create(folder.path("d"), dtype));
    or_throw(writer->add_document(std::vector<int32_t>{1, 2, 100}));
    or_throw(writer->add_document({}));
    or_throw(writer->add_document(std::vector<int32_t>{0, 127}));
    or_throw(writer->finish());
    const auto d = or_throw(IndexedDataset::open(folder.path("d.idx")));
    EXPECT_EQ(d->num_tokens(), 5);
    EXPECT_EQ(d->num_documents(), 3);
    EXPECT_EQ(tokens(*d, 1, 3), (std::vector<int32_t>{2, 100, 0}));
    EXPECT_EQ(or_throw(d->document(1)), std::vector<int32_t>());
    EXPECT_EQ(or_throw(d->document(2)), (std::vector<int32_t>{0, 127}));
  }
}

TEST(IndexedDataset, SequencesMayLieAnywhere) {
  const TempFolder folder;
  folder.write("d.bin", u16_bytes({10, 11, 12, 13, 14, 15}));
  folder.write("d.idx", Index{1, 8, {2, 3, 0}, {8, 0, 4}, {0, 2, 3}}.bytes());
  const auto d = or_throw(IndexedDataset::open(folder.path("d")));
  EXPECT_EQ(tokens(*d, 0, 5), (std::vector<int32_t>{14, 15, 10, 11, 12}));
  EXPECT_EQ(or_throw(d->document(0)), (std::vector<int32_t>{14, 15, 10, 11, 12}));
  EXPECT_EQ(or_throw(d->document(1)), std::vector<int32_t>());
  EXPECT_EQ(d->check_vocab(15).error().code, ErrorCode::dataset_token_range);
  EXPECT_TRUE(d->check_vocab(16).ok());
}

// A2: byte offsets and token counts past 2^31 and 2^32 (a sparse file: no disk is used).
TEST(IndexedDataset, OffsetsPassTwoToTheThirtyTwo) {
  const TempFolder folder;
  constexpr int32_t kLong = 1 << 30;
  folder.write("d.bin", "");
  const int64_t bytes = 4 * int64_t{kLong} * 2;
  std::filesystem::resize_file(folder.path("d.bin"), static_cast<uintmax_t>(bytes + 6));
  {
    std::fstream file(folder.path("d.bin"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(bytes);
    file << u16_bytes({7, 8, 9});
  }
  std::vector<int64_t> offsets = {0, 2LL * kLong, 4LL * kLong, 6LL * kLong, 8LL * kLong};
  for (const bool in_order : {true, false}) {
    if (!in_order) std::swap(offsets[0], offsets[3]);
    folder.write("d.idx", Index{1, 8, {kLong, kLong, kLong, kLong, 3}, offsets, {0, 1, 2, 3, 4, 5}}.bytes());
    const auto d = or_throw(IndexedDataset::open(folder.path("d")));
    EXPECT_EQ(d->num_tokens(), 4 * int64_t{kLong} + 3);
    // Before it is read: a wrong range would be billions of tokens.
    ASSERT_EQ(or_throw(d->document_range(4)), std::pair(4 * int64_t{kLong}, 4 * int64_t{kLong} + 3));
    EXPECT_EQ(or_throw(d->document(4)), (std::vector<int32_t>{7, 8, 9}));
    EXPECT_EQ(or_throw(d->document_range(3)), std::pair(3 * int64_t{kLong}, 4 * int64_t{kLong}));
    EXPECT_EQ(tokens(*d, 4 * int64_t{kLong} - 1, 3), (std::vector<int32_t>{0, 7, 8}));
  }
}

TEST(IndexedDataset, NamesTheIdThatTheVocabularyLacks) {
  const TempFolder folder;
  folder.write("d.bin", u16_bytes({1, 2, 300, 4}));
  folder.write("d.idx", Index{1, 8, {4}, {0}, {0, 1}}.bytes());
  const auto d = or_throw(IndexedDataset::open(folder.path("d")));
  EXPECT_TRUE(d->check_vocab(301).ok());
  const Status status = d->check_vocab(300);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::dataset_token_range);
  EXPECT_EQ(exit_code(status.error().code), ExitCode::input);
  EXPECT_EQ(status.error().culprit, folder.path("d.bin"));
  EXPECT_EQ(status.error().what, "token 2 is 300, outside the vocabulary of 300 ids");
}

TEST(IndexedDataset, NegativeAndHugeIdsAreNotRead) {
  const TempFolder folder;
  std::string bin;
  for (const int64_t id : {int64_t{1}, int64_t{-5}, int64_t{1} << 31}) put(bin, id);
  folder.write("d.bin", bin);
  folder.write("d.idx", Index{1, 5, {3}, {0}, {0, 1}}.bytes());
  const auto d = or_throw(IndexedDataset::open(folder.path("d")));
  int32_t id = 0;
  EXPECT_TRUE(d->read_tokens(0, 1, &id).ok());
  EXPECT_EQ(d->read_tokens(1, 1, &id).error().code, ErrorCode::dataset_token_range);
  EXPECT_NE(d->read_tokens(2, 1, &id).error().what.find("2147483648"), std::string::npos);
}

TEST(IndexedDataset, DamagedFilesAreRefused) {
  const Index good{1, 8, {2, 2}, {0, 4}, {0, 1, 2}};
  const auto open = [](const std::string& idx) {
    const TempFolder folder;
    folder.write("d.bin", u16_bytes({1, 2, 3, 4}));
    folder.write("d.idx", idx);
    auto dataset = IndexedDataset::open(folder.path("d"));
    EXPECT_TRUE(dataset.ok() || dataset.error().code == ErrorCode::dataset_malformed);
    return dataset.ok();
  };
  ASSERT_TRUE(open(good.bytes()));
  EXPECT_TRUE(open(good.bytes() + std::string(2, '\0')));  // modes
  EXPECT_FALSE(open(good.bytes() + "x"));
  for (size_t n = 0; n < good.bytes().size(); ++n) EXPECT_FALSE(open(good.bytes().substr(0, n))) << n;
  const auto with = [&](auto change) {
    Index index = good;
    change(index);
    return open(index.bytes());
  };
  EXPECT_FALSE(with([](Index& i) { i.version = 2; }));
  for (const int code : {0, 6, 7, 9, 255}) EXPECT_FALSE(with([&](Index& i) { i.dtype = static_cast<uint8_t>(code); }));
  EXPECT_FALSE(with([](Index& i) { i.dtype = 4; }));  // four bytes a token: past the end
  EXPECT_FALSE(with([](Index& i) { i.lengths[1] = 3; }));
  EXPECT_FALSE(with([](Index& i) { i.lengths[0] = -1; }));
  EXPECT_FALSE(with([](Index& i) { i.lengths[1] = INT32_MAX; }));
  EXPECT_FALSE(with([](Index& i) { i.offsets[1] = -4; }));
  EXPECT_FALSE(with([](Index& i) { i.offsets[1] = 3; }));
  EXPECT_FALSE(with([](Index& i) { i.offsets[1] = INT64_MAX - 1; }));
  EXPECT_FALSE(with([](Index& i) { i.documents = {0, 2, 1}; }));
  EXPECT_FALSE(with([](Index& i) { i.documents = {1, 1, 2}; }));
  EXPECT_FALSE(with([](Index& i) { i.documents = {0, 1, 3}; }));
  EXPECT_FALSE(with([](Index& i) { i.documents = {0, 1, 1}; }));
  EXPECT_FALSE(with([](Index& i) { i.documents = {}; }));
  for (const uint64_t n : {uint64_t{1}, uint64_t{1} << 61, UINT64_MAX - 1}) {
    EXPECT_FALSE(with([&](Index& i) { i.sequences_named = n; })) << n;
  }
}

TEST(IndexedDataset, MissingPartsAreNamed) {
  const TempFolder folder;
  folder.write("d.bin", "");
  const auto d = IndexedDataset::open(folder.path("d"));
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.error().code, ErrorCode::dataset_missing);
  EXPECT_EQ(d.error().culprit, folder.path("d.idx"));
}

// A18: until finish() there is nothing that opens, and nothing stays behind.
TEST(IndexedDatasetWriter, UnfinishedLeavesNothing) {
  const TempFolder folder;
  {
    auto writer = or_throw(IndexedDatasetWriter::create(folder.path("d"), TokenDtype::i32));
    or_throw(writer->add_document(std::vector<int32_t>(1 << 19, 3)));
    for (const auto& entry : std::filesystem::directory_iterator(folder.path(""))) {
      EXPECT_FALSE(IndexedDataset::open(entry.path().string()).ok());
    }
    EXPECT_FALSE(IndexedDataset::open(folder.path("d")).ok());
  }
  EXPECT_EQ(TempFolder::num_files(folder.path("")), 0u);
}

TEST(IndexedDatasetWriter, RefusesIdsThatDoNotFit) {
  const TempFolder folder;
  auto writer = or_throw(IndexedDatasetWriter::create(folder.path("d"), TokenDtype::u16));
  EXPECT_TRUE(writer->add_document(std::vector<int32_t>{65535}).ok());
  EXPECT_EQ(writer->add_document(std::vector<int32_t>{65536}).error().code, ErrorCode::dataset_token_range);
  EXPECT_EQ(writer->add_document(std::vector<int32_t>{-1}).error().code, ErrorCode::dataset_token_range);
}

TEST(IndexedDatasetWriter, ReplacesADatasetWhole) {
  const TempFolder folder;
  for (const int32_t id : {1, 2}) {
    auto writer = or_throw(IndexedDatasetWriter::create(folder.path("d"), TokenDtype::u16));
    or_throw(writer->add_document(std::vector<int32_t>(static_cast<size_t>(id), id)));
    or_throw(writer->finish());
  }
  EXPECT_EQ(or_throw(or_throw(IndexedDataset::open(folder.path("d")))->document(0)), (std::vector<int32_t>{2, 2}));
}

}  // namespace
}  // namespace penteract::data
