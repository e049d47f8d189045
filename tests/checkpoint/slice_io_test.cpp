#include "penteract/checkpoint/slice_io.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace penteract::checkpoint {
namespace {

class SliceIo : public ::testing::Test {
 protected:
  // A file with `skip` bytes and then the elements of `box` of the global tensor.
  StoredBox store(const at::Tensor& whole, const topology::Slice& box, Dtype dtype, size_t skip) {
    const at::Tensor part = part_of(whole, box);
    std::string bytes(skip, 'x');
    bytes.append(static_cast<const char*>(part.const_data_ptr()), part.nbytes());
    spill(path_, bytes + "behind");
    return {dtype, box, skip};
  }
  FileReader file() { return or_throw(FileReader::open(path_)); }

  TempDir dir_;
  std::string path_ = dir_ / "data";
};

TEST_F(SliceIo, EveryBoxOfASmallTensor) {
  const at::Tensor whole = global_tensor({4, 5, 3}, at::kFloat, 7);
  const topology::Slice stored{{1, 0, 1}, {3, 5, 2}};
  const StoredBox box = store(whole, stored, Dtype::f32, 24);
  const FileReader reader = file();
  for (int64_t a = 1; a < 4; ++a) {
    for (int64_t b = 0; b < 5; ++b) {
      for (int64_t n = 1; n <= 5 - b; ++n) {
        const topology::Slice part{{a, b, 1}, {4 - a, n, 2}};
        const at::Tensor out = at::empty(part.size, at::kFloat);
        ASSERT_TRUE(read_box(reader, box, part, part, out).ok());
        EXPECT_TRUE(at::equal(out, part_of(whole, part))) << part.to_string();
      }
    }
  }
}

TEST_F(SliceIo, APartLandsInItsPlaceOfWhatIsWanted) {
  const at::Tensor whole = global_tensor({6, 4}, at::kFloat, 0);
  const StoredBox box = store(whole, {{2, 0}, {4, 4}}, Dtype::f32, 0);
  const topology::Slice wanted{{1, 1}, {4, 2}}, part{{2, 1}, {3, 2}};
  at::Tensor out = at::empty({4, 2}, at::kDouble);  // cast on the way
  out.fill_(-1);
  ASSERT_TRUE(read_box(file(), box, part, wanted, out).ok());
  EXPECT_TRUE(at::equal(out.narrow(0, 1, 3), part_of(whole, part).to(at::kDouble)));
  EXPECT_EQ(out[0][0].item<double>(), -1);
}

TEST_F(SliceIo, TheHashIsThatOfTheWholeBoxWhateverPartIsRead) {
  // More elements than one block holds.
  const at::Tensor whole = global_tensor({300, 200}, at::kFloat, 0);
  const topology::Slice all = topology::Slice::whole({300, 200});
  const StoredBox box = store(whole, all, Dtype::f32, 8);
  const std::string expected = hash128_hex(whole.const_data_ptr(), whole.nbytes());
  for (const topology::Slice& part : {all, topology::Slice{{0, 3}, {300, 1}}, topology::Slice{{299, 199}, {1, 1}}}) {
    Hasher128 hash;
    const at::Tensor out = at::empty(part.size, at::kFloat);
    ASSERT_TRUE(read_box(file(), box, part, part, out, &hash).ok());
    EXPECT_TRUE(at::equal(out, part_of(whole, part)));
    EXPECT_EQ(hash.hex(), expected) << part.to_string();
  }
  Hasher128 range;
  ASSERT_TRUE(hash_range(file(), 8, whole.nbytes(), range).ok());
  EXPECT_EQ(range.hex(), expected);
}

TEST_F(SliceIo, ShortFilesAndBoolsThatAreNone) {
  const at::Tensor whole = global_tensor({8}, at::kFloat, 0);
  const topology::Slice all = topology::Slice::whole({8});
  StoredBox box = store(whole, all, Dtype::f32, 0);
  box.offset_bytes = 12;  // past the end
  at::Tensor out = at::empty({8}, at::kFloat);
  EXPECT_EQ(read_box(file(), box, all, all, out).error().code, ErrorCode::file_malformed);
  spill(path_, std::string("\0\1\2\1", 4));
  const topology::Slice four = topology::Slice::whole({4}), two = topology::Slice{{0}, {2}};
  at::Tensor flags = at::empty({4}, at::kBool);
  EXPECT_EQ(read_box(file(), {Dtype::boolean, four, 0}, four, four, flags).error().code, ErrorCode::file_malformed);
  EXPECT_TRUE(read_box(file(), {Dtype::boolean, four, 0}, two, two, at::empty({2}, at::kBool)).ok());
}

}  // namespace
}  // namespace penteract::checkpoint
