#include "penteract/infer/collect.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "penteract/base/check.h"

namespace penteract::infer {
namespace {

constexpr uint64_t kChannel = 0;
constexpr comm::Options kOptions{.tag = "collect"};

// tensor, dims, offsets, sizes of each tile.
std::vector<int64_t> encode(const std::vector<Tile>& tiles) {
  std::vector<int64_t> words;
  for (const Tile& tile : tiles) {
    words.push_back(tile.tensor);
    words.push_back(tile.slice.num_dims());
    words.insert(words.end(), tile.slice.offset.begin(), tile.slice.offset.end());
    words.insert(words.end(), tile.slice.size.begin(), tile.slice.size.end());
  }
  return words;
}

void place(const std::vector<int64_t>& words, const at::Tensor& values, std::vector<at::Tensor>& globals) {
  int64_t first = 0;
  for (size_t at = 0; at < words.size();) {
    at::Tensor& global = globals.at(words[at]);
    const int64_t dims = words[at + 1];
    const auto offsets = words.begin() + static_cast<int64_t>(at) + 2, sizes = offsets + dims;
    topology::Slice slice{{offsets, sizes}, {sizes, sizes + dims}};
    at::Tensor where = global;
    for (int d = 0; d < dims; ++d) where = where.narrow(d, slice.offset[d], slice.size[d]);
    const int64_t count = slice.num_elements();
    where.copy_(values.narrow(0, first, count).view(slice.size));
    first += count;
    at += 2 + 2 * dims;
  }
}

}  // namespace

void collect(const comm::Group& world, const std::vector<Tile>& tiles, at::ScalarType dtype,
             std::vector<at::Tensor>& globals) {
  std::vector<at::Tensor> flat = {at::empty({0}, dtype)};
  for (const Tile& tile : tiles) {
    PENT_CHECK(tile.values.scalar_type() == dtype && tile.values.numel() == tile.slice.num_elements());
    flat.push_back(tile.values.reshape({-1}));
  }
  const std::vector<int64_t> words = encode(tiles);
  const at::Tensor values = at::cat(flat);
  const auto sizes = world.all_gather_int64({static_cast<int64_t>(words.size()), values.numel()}, kOptions);
  if (world.index() == 0) {
    place(words, values, globals);
    for (int from = 1; from < world.size(); ++from) {
      if (sizes[2 * from] == 0) continue;
      at::Tensor their_words = at::empty({sizes[2 * from]}, at::kLong),
                 theirs = at::empty({sizes[2 * from + 1]}, dtype);
      world.recv_into(their_words, from, kChannel, kOptions).wait();
      if (theirs.numel() > 0) world.recv_into(theirs, from, kChannel, kOptions).wait();
      const auto* data = their_words.data_ptr<int64_t>();
      place({data, data + their_words.numel()}, theirs, globals);
    }
  } else if (!words.empty()) {
    at::Tensor mine = at::empty({static_cast<int64_t>(words.size())}, at::kLong);
    std::copy(words.begin(), words.end(), mine.data_ptr<int64_t>());
    world.send(mine, 0, kChannel, kOptions).wait();
    if (values.numel() > 0) world.send(values, 0, kChannel, kOptions).wait();
  }
}

}  // namespace penteract::infer
