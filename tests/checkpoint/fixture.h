// What the checkpoint tests share: a folder that goes away, a small set of tensors cut over any number of ranks.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "penteract/base/check.h"
#include "penteract/checkpoint/retention.h"
#include "penteract/checkpoint/step_directory.h"
#include "penteract/checkpoint/step_writer.h"

namespace penteract::checkpoint {

class TempDir {
 public:
  TempDir() {
    // In memory where the machine has such a place: every save syncs, which a busy disk makes slow.
    const std::filesystem::path shared_memory = "/dev/shm";
    std::error_code error;
    const auto parent =
        std::filesystem::is_directory(shared_memory, error) && ::access(shared_memory.c_str(), W_OK) == 0
            ? shared_memory
            : std::filesystem::temp_directory_path();
    std::string name = (parent / "pent-checkpoint-XXXXXX").string();
    PENT_CHECK(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempDir() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return join_path(path_, name); }

 private:
  std::string path_;
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline void flip_byte(const std::string& path, size_t at) {
  std::string bytes = slurp(path);
  bytes.at(at) = static_cast<char>(bytes[at] ^ 0x10);
  spill(path, bytes);
}

// A global tensor of the test model; `base` tells models apart.
inline at::Tensor global_tensor(const std::vector<int64_t>& shape, at::ScalarType type, int64_t base) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return at::arange(base, base + count, at::TensorOptions(at::kLong)).to(type).view(shape);
}

inline at::Tensor part_of(const at::Tensor& whole, const topology::Slice& slice) {
  at::Tensor part = whole;
  for (int d = 0; d < slice.num_dims(); ++d) part = part.narrow(d, slice.offset[d], slice.size[d]);
  return part.contiguous();
}

struct TestTensor {
  std::string name;
  std::vector<int64_t> shape;
  at::ScalarType type;
};

inline const std::vector<TestTensor>& test_tensors() {
  static const std::vector<TestTensor> tensors = {
      {"master.embed.weight", {7, 5}, at::kFloat},  {"exp_avg.embed.weight", {7, 5}, at::kFloat},
      {"master.experts.up", {4, 3, 2}, at::kFloat}, {"master.norm.weight", {3}, at::kDouble},
      {"model.norm.weight", {3}, at::kBFloat16},    {"optimizer.count", {}, at::kLong},
  };
  return tensors;
}

// The pieces of `rank` of `num_ranks`: experts are cut along their last dim where two ranks divide them, all else in
// flat ranges as ZeRO cuts; with more ranks than elements some have none.
inline std::vector<Piece> test_pieces(int rank, int num_ranks, int64_t base) {
  std::vector<Piece> pieces;
  for (const TestTensor& t : test_tensors()) {
    const at::Tensor whole = global_tensor(t.shape, t.type, base);
    std::vector<topology::Slice> slices;
    if (t.name == "master.experts.up" && num_ranks == 2) {
      slices = {{{0, 0, rank}, {4, 3, 1}}};
    } else {
      slices = topology::slices_of_flat_range(t.shape, topology::even_part(whole.numel(), num_ranks, rank));
    }
    for (topology::Slice& slice : slices) pieces.push_back({t.name, t.shape, slice, part_of(whole, slice)});
  }
  return pieces;
}

inline SharedState test_state(int64_t step, int num_ranks) {
  SharedState state;
  state.step = step;
  state.tokens = step * 2048;
  state.samples = step * 8;
  state.seed = 1234;
  state.num_ranks = num_ranks;
  state.layout = "tp=1,dp=2";
  state.recipe_toml = "[run]\nseed = 1234\n";
  state.extra_json = "{}";
  return state;
}

// Saves as save() does, from one thread.
inline Status write_step(const std::string& checkpoints_dir, int64_t step, int num_ranks, int64_t base, int keep = 0) {
  PENT_ASSIGN(StepTransaction transaction, StepTransaction::begin(checkpoints_dir, step));
  std::vector<PartRecord> parts;
  for (int rank = 0; rank < num_ranks; ++rank) {
    PENT_ASSIGN(PartRecord part, write_part(temporary_directory(checkpoints_dir, step), step, rank, num_ranks,
                                            test_pieces(rank, num_ranks, base)));
    parts.push_back(part);
  }
  PENT_TRY(transaction.commit(test_state(step, num_ranks), parts));
  return retain_steps(checkpoints_dir, keep);
}

}  // namespace penteract::checkpoint
