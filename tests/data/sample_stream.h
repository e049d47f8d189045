// What a run must draw, said once more and slowly: sample by sample, from the first on. For tests of windows and of the
// training loop.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "data/temp_folder.h"
#include "penteract/base/rng.h"
#include "penteract/data/windows.h"

namespace penteract::data {

// From a start or resume at sample `at` on, the stream has num_windows windows.
struct StreamSize {
  int64_t at = 0;
  int64_t num_windows = 0;
};

struct StreamId {
  int64_t epoch = 0;
  int64_t window = 0;
  bool operator==(const StreamId&) const = default;
};

// The first `count` samples of a stream whose sizes are `sizes`, ascending by `at`, the first at 0. An epoch that begins
// takes the newest size; one that has begun keeps its own. `name` stands before "epoch" in the key ("entry 1 ").
inline std::vector<StreamId> expected_ids(const std::vector<StreamSize>& sizes, int64_t count, uint64_t seed,
                                          const std::string& name = "") {
  std::vector<StreamId> ids;
  for (int64_t epoch = 0; static_cast<int64_t>(ids.size()) < count; ++epoch) {
    const auto begin = static_cast<int64_t>(ids.size());
    int64_t num_windows = 0;
    for (const StreamSize& size : sizes) {
      if (size.at <= begin) num_windows = size.num_windows;
    }
    const auto key = philox_key(seed, name + "epoch " + std::to_string(epoch));
    for (int64_t i = 0; i < num_windows && begin + i < count; ++i) {
      ids.push_back({epoch, static_cast<int64_t>(
                                permute_index(key, static_cast<uint64_t>(num_windows), static_cast<uint64_t>(i)))});
    }
  }
  return ids;
}

// A dataset of the ids first, first + 1, … in a folder.
inline std::shared_ptr<const IndexedDataset> counting_dataset(const TempFolder& folder, int32_t first, int32_t count) {
  const std::string prefix = folder.path("from-" + std::to_string(first) + "-" + std::to_string(count));
  auto writer = or_throw(IndexedDatasetWriter::create(prefix, TokenDtype::i32));
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  or_throw(writer->add_document(ids));
  or_throw(writer->finish());
  return or_throw(IndexedDataset::open(prefix));
}

}  // namespace penteract::data
