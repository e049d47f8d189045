#include "penteract/checkpoint/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace penteract::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ReaderTest : public ::testing::Test {
 protected:
  std::unique_ptr<Reader> written(int num_ranks) {
    EXPECT_TRUE(write_step(dir_.path(), 10, num_ranks, 100).ok());
    auto reader = Reader::open(step_);
    EXPECT_TRUE(reader.ok()) << reader.error().message();
    return std::move(reader).value();
  }
  // Reads and returns the message of the error, or "".
  static std::string read(const Reader& reader, const std::string& tensor, const topology::Slice& slice,
                          at::Tensor& out) {
    const Status status = reader.read(tensor, slice, out);
    return status.ok() ? "" : status.error().message();
  }
  TempDir dir_;
  std::string step_ = dir_ / "step-00000010";
};

TEST_F(ReaderTest, AnySliceOfAnyNumberOfWriters) {
  for (const int num_ranks : {1, 2, 3, 5, 40}) {  // with 40, some ranks hold nothing of some tensors (row C8)
    const auto reader = written(num_ranks);
    EXPECT_EQ(reader->state().num_ranks, num_ranks);
    EXPECT_EQ(reader->state().tokens, 20480);
    EXPECT_EQ(reader->tensors().size(), test_tensors().size());
    for (const TestTensor& t : test_tensors()) {
      EXPECT_EQ(reader->find(t.name)->shape, t.shape);
      const at::Tensor whole = global_tensor(t.shape, t.type, 100);
      std::vector<topology::Slice> slices = {topology::Slice::whole(t.shape)};
      for (int n = 2; n <= 3; ++n) {
        for (int i = 0; i < n; ++i) {
          for (auto& s : topology::slices_of_flat_range(t.shape, topology::even_part(whole.numel(), n, i)))
            slices.push_back(s);
        }
      }
      if (t.shape.size() == 2) slices.push_back({{2, 1}, {3, 2}});
      if (t.shape.size() == 3) slices.push_back({{1, 1, 1}, {2, 2, 1}});
      if (t.shape.size() == 2) slices.push_back({{2, 1}, {0, 2}});
      for (const topology::Slice& slice : slices) {
        at::Tensor out = at::zeros({slice.num_elements()}, at::TensorOptions(t.type));
        EXPECT_EQ(read(*reader, t.name, slice, out), "") << t.name << slice.to_string() << num_ranks;
        EXPECT_TRUE(out.equal(part_of(whole, slice).flatten())) << t.name << slice.to_string() << num_ranks;
      }
    }
  }
}

// Pieces beyond the size of a block, cut along rows and columns, with rows shorter and longer than a block.
TEST_F(ReaderTest, LargePiecesAreReadInBlocks) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{300, 3000}, std::vector<int64_t>{3, 2, 300'000}}) {
    const int64_t last = static_cast<int64_t>(shape.size()) - 1, half = shape[last] / 2;
    const at::Tensor whole = global_tensor(shape, at::kFloat, 0);
    auto transaction = StepTransaction::begin(dir_.path(), 10);
    ASSERT_TRUE(transaction.ok());
    std::vector<PartRecord> parts;
    for (int rank = 0; rank < 2; ++rank) {
      topology::Slice slice = topology::Slice::whole(shape);
      slice.offset[last] = rank * half;
      slice.size[last] = half;
      parts.push_back(*write_part(temporary_directory(dir_.path(), 10), 10, rank, 2,
                                  {{"big", shape, slice, part_of(whole, slice)}}));
    }
    ASSERT_TRUE(transaction->commit(test_state(10, 2), parts).ok());
    topology::Slice across = topology::Slice::whole(shape);
    across.offset[0] = 1;
    across.size[0] -= 1;
    across.offset[last] = half - 7;
    across.size[last] = half - 100;
    for (const topology::Slice& slice : {topology::Slice::whole(shape), across}) {
      const auto reader = Reader::open(step_);
      ASSERT_TRUE(reader.ok());
      for (int time = 0; time < 2; ++time) {  // with the checksum, then without
        at::Tensor out = at::zeros(slice.size, at::TensorOptions(at::kDouble));
        EXPECT_EQ(read(**reader, "big", slice, out), "");
        EXPECT_TRUE(out.equal(part_of(whole, slice).to(at::kDouble))) << slice.to_string();
      }
    }
  }
}

TEST_F(ReaderTest, CastsBetweenFloatingTypesOnly) {
  const auto reader = written(2);
  at::Tensor bf16 = at::zeros({7, 5}, at::TensorOptions(at::kBFloat16));
  ASSERT_EQ(read(*reader, "master.embed.weight", topology::Slice::whole({7, 5}), bf16), "");
  EXPECT_TRUE(bf16.equal(global_tensor({7, 5}, at::kFloat, 100).to(at::kBFloat16)));
  at::Tensor f64 = at::zeros({3}, at::TensorOptions(at::kDouble));
  ASSERT_EQ(read(*reader, "model.norm.weight", topology::Slice::whole({3}), f64), "");
  EXPECT_TRUE(f64.equal(global_tensor({3}, at::kDouble, 100)));
  at::Tensor i64 = at::zeros({3}, at::TensorOptions(at::kLong));
  EXPECT_THAT(read(*reader, "model.norm.weight", topology::Slice::whole({3}), i64), HasSubstr("Long is wanted"));
  at::Tensor f32 = at::zeros({}, at::TensorOptions(at::kFloat));
  EXPECT_THAT(read(*reader, "optimizer.count", topology::Slice{}, f32), HasSubstr("holds I64"));
}

TEST_F(ReaderTest, WhatItDoesNotHoldIsNamed) {
  const auto reader = written(2);
  at::Tensor out = at::zeros({3}, at::TensorOptions(at::kDouble));
  EXPECT_FALSE(reader->has("master.norm.weights"));
  EXPECT_THAT(read(*reader, "master.norm.weights", topology::Slice::whole({3}), out),
              HasSubstr("nearest it holds is master.norm.weight"));
  out = at::zeros({4}, at::TensorOptions(at::kDouble));
  const Status status = reader->read("master.norm.weight", topology::Slice::whole({4}), out);
  EXPECT_EQ(status.error().code, ErrorCode::checkpoint_mismatch);
  EXPECT_THAT(status.error().message(), HasSubstr("[0:4] is wanted, the checkpoint holds the shape [3]"));
  EXPECT_THAT(read(*reader, "master.norm.weight", {{0, 0}, {2, 2}}, out), HasSubstr("is wanted"));
}

TEST_F(ReaderTest, EveryFlippedByteOfTheDataIsCaught) {
  ASSERT_TRUE(write_step(dir_.path(), 10, 1, 100).ok());
  const std::string path = step_ + "/rank-00000.safetensors";
  const std::string good = slurp(path);
  uint64_t data_bytes = 0;
  for (const TestTensor& t : test_tensors()) data_bytes += global_tensor(t.shape, t.type, 0).nbytes();
  for (uint64_t at = good.size() - data_bytes; at < good.size(); at += 7) {
    flip_byte(path, at);
    const auto reader = Reader::open(step_);
    ASSERT_TRUE(reader.ok());
    int failures = 0;
    for (const TestTensor& t : test_tensors()) {
      // A slice of one element: the whole piece is checked all the same.
      const topology::Slice corner{std::vector<int64_t>(t.shape.size(), 0), std::vector<int64_t>(t.shape.size(), 1)};
      at::Tensor out = at::zeros({1}, at::TensorOptions(t.type));
      const Status status = (*reader)->read(t.name, corner, out);
      if (status.ok()) continue;
      ++failures;
      EXPECT_EQ(status.error().code, ErrorCode::checkpoint_damaged);
      EXPECT_THAT(status.error().message(), HasSubstr("rank-00000.safetensors, " + t.name));
    }
    EXPECT_EQ(failures, 1) << at;
    spill(path, good);
  }
}

TEST_F(ReaderTest, APieceIsVerifiedOnce) {
  const auto reader = written(1);
  at::Tensor out = at::zeros({3}, at::TensorOptions(at::kDouble));
  ASSERT_EQ(read(*reader, "master.norm.weight", topology::Slice::whole({3}), out), "");
  flip_byte(step_ + "/rank-00000.safetensors", fs::file_size(step_ + "/rank-00000.safetensors") - 1);  // another tensor
  EXPECT_EQ(read(*reader, "master.norm.weight", topology::Slice::whole({3}), out), "");
  EXPECT_TRUE(out.equal(global_tensor({3}, at::kDouble, 100)));
}

TEST_F(ReaderTest, DamageOfTheFrameIsAPreciseError) {
  const auto message = [&](ErrorCode code) {
    const auto reader = Reader::open(step_);
    if (reader.ok()) return std::string("opened");
    EXPECT_EQ(reader.error().code, code) << reader.error().message();
    return reader.error().message();
  };
  const auto afresh = [&] { ASSERT_TRUE(write_step(dir_.path(), 10, 3, 100).ok()); };
  EXPECT_THAT(message(ErrorCode::checkpoint_missing), HasSubstr("step-00000010"));
  afresh();
  flip_byte(step_ + "/rank-00001.catalog", 100);
  EXPECT_THAT(message(ErrorCode::checkpoint_damaged), HasSubstr("rank-00001.catalog"));
  afresh();
  flip_byte(step_ + "/state.json", 100);
  EXPECT_THAT(message(ErrorCode::checkpoint_damaged), HasSubstr("state.json"));
  afresh();
  fs::remove(step_ + "/state.json");
  EXPECT_THAT(message(ErrorCode::checkpoint_incomplete), HasSubstr("state.json: is missing"));
  afresh();
  fs::remove(step_ + "/rank-00002.catalog");
  EXPECT_THAT(message(ErrorCode::checkpoint_incomplete), HasSubstr("rank-00002.catalog: is missing"));
  afresh();
  fs::resize_file(step_ + "/rank-00002.safetensors", 100);
  EXPECT_THAT(message(ErrorCode::checkpoint_damaged), HasSubstr("rank-00002.safetensors: has 100 bytes"));
  afresh();
  fs::rename(step_ + "/rank-00001.catalog", step_ + "/x");
  fs::rename(step_ + "/rank-00002.catalog", step_ + "/rank-00001.catalog");
  fs::rename(step_ + "/x", step_ + "/rank-00002.catalog");
  EXPECT_THAT(message(ErrorCode::checkpoint_damaged), HasSubstr("rank-00001.catalog: is of step 10, rank 2 of 3"));
  // A part of the same step and rank from another run, catalog and data.
  const TempDir other;
  ASSERT_TRUE(write_step(other.path(), 10, 3, 200).ok());
  afresh();
  for (const char* name : {"rank-00001.catalog", "rank-00001.safetensors"}) {
    fs::copy(join_path(other / "step-00000010", name), join_path(step_, name), fs::copy_options::overwrite_existing);
  }
  EXPECT_THAT(message(ErrorCode::checkpoint_damaged), HasSubstr("not the one that state.json lists"));
}

}  // namespace
}  // namespace penteract::checkpoint
