// A run's samples are a function of its data alone: not of where it stopped, how often, or how many samples a step drew.
// Brute force over every pair of stops.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "data/sample_stream.h"

namespace penteract::data {
namespace {

constexpr int64_t kSeqLength = 4;
constexpr uint64_t kSeed = 1234;

// What a checkpoint keeps of the data.
struct Saved {
  std::string plan;
  int64_t samples = 0;
};

using Entries = std::vector<TrainingWindows::Entry>;

class SampleOrder : public ::testing::Test {
 protected:
  std::shared_ptr<const IndexedDataset> dataset(int32_t first, int32_t count) {
    return counting_dataset(folder_, first, count);
  }

  // Draws [saved.samples, end) in a process of its own: nothing but `saved` came from the one before. The first token
  // of each sample, which tells it apart from all others.
  static std::vector<int32_t> draw(const Entries& entries, Saved& saved, int64_t end) {
    const std::optional<DataPlan> plan =
        saved.plan.empty() ? std::nullopt : std::optional(or_throw(DataPlan::from_json(saved.plan, "checkpoint")));
    const auto windows = or_throw(TrainingWindows::create(entries, kSeqLength, kSeed, plan, saved.samples));
    std::vector<int32_t> first_tokens;
    std::vector<int32_t> tokens(kSeqLength + 1);
    for (; saved.samples < end; ++saved.samples) {
      or_throw(windows.sample(saved.samples, tokens.data()));
      for (size_t i = 1; i < tokens.size(); ++i) EXPECT_EQ(tokens[i], tokens[0] + static_cast<int32_t>(i));
      first_tokens.push_back(tokens[0]);
    }
    saved.plan = windows.plan().to_json();
    return first_tokens;
  }

  TempFolder folder_;
};

std::vector<int32_t> tokens_of(const std::vector<StreamId>& ids, int32_t first_token = 0) {
  std::vector<int32_t> tokens;
  for (const StreamId& id : ids) tokens.push_back(first_token + static_cast<int32_t>(id.window * kSeqLength));
  return tokens;
}

TEST_F(SampleOrder, NoPairOfStopsChangesIt) {
  const Entries entries = {{{dataset(0, 22), dataset(22, 9)}, 1, "train"}};  // 7 windows
  constexpr int64_t kCount = 25;                                             // 3 epochs and a half
  const auto ids = expected_ids({{0, 7}}, kCount, kSeed);
  const auto expected = tokens_of(ids);
  std::map<int64_t, std::set<int64_t>> seen;
  for (const StreamId& id : ids) seen[id.epoch].insert(id.window);
  for (int64_t epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(seen[epoch].size(), 7u);
  // Stops before the first sample, at each, at the epochs' edges 7, 14 and 21, and twice at the same.
  for (int64_t first = 0; first <= kCount; ++first) {
    for (int64_t second = first; second <= kCount; ++second) {
      Saved saved;
      std::vector<int32_t> drawn;
      for (int64_t end : {first, second, kCount}) {
        const auto part = draw(entries, saved, end);
        drawn.insert(drawn.end(), part.begin(), part.end());
      }
      ASSERT_EQ(drawn, expected) << "stops at " << first << " and " << second;
    }
  }
}

// 7 windows, then 12, then 17: what is appended at a resume is drawn from the next epoch on, in full.
TEST_F(SampleOrder, DataAppendedAtAnyPairOfStopsJoinsAtTheNextEpoch) {
  const auto a = dataset(0, 29), b = dataset(29, 21), c = dataset(50, 19), grown = dataset(29, 40);
  // The second time by a dataset more, or by one that has grown.
  for (const DatasetList& last : {DatasetList{a, b, c}, DatasetList{a, grown}}) {
    const std::vector<Entries> entries = {{{{a}, 1, "train"}}, {{{a, b}, 1, "train"}}, {{last, 1, "train"}}};
    constexpr int64_t kCount = 50;
    for (int64_t first = 0; first <= 22; ++first) {
      for (int64_t second = first; second <= 40; ++second) {
        const auto ids = expected_ids({{0, 7}, {first, 12}, {second, 17}}, kCount, kSeed);
        Saved saved;
        std::vector<int32_t> drawn;
        size_t process = 0;
        for (int64_t end : {first, second, kCount}) {
          const auto part = draw(entries[process++], saved, end);
          drawn.insert(drawn.end(), part.begin(), part.end());
        }
        ASSERT_EQ(drawn, tokens_of(ids)) << "appended at " << first << " and " << second;
        // Whole epochs only: all but the last, which ends with the drawing.
        std::map<int64_t, std::set<int64_t>> seen;
        std::map<int64_t, int64_t> times;
        for (const StreamId& id : ids) seen[id.epoch].insert(id.window), ++times[id.epoch];
        for (const auto& [epoch, windows] : seen) {
          ASSERT_EQ(static_cast<int64_t>(windows.size()), times[epoch]);
          if (epoch != seen.rbegin()->first) {
            ASSERT_EQ(*windows.rbegin() + 1, times[epoch]);
          }
        }
      }
    }
  }
}

// Each entry has epochs of its own; data appended to one changes nothing of the other.
TEST_F(SampleOrder, NoPairOfStopsChangesABlend) {
  const auto a = dataset(0, 29), more = dataset(29, 21), b = dataset(1000, 14);  // 7, then 12 windows; 3
  const Entries before = {{{a}, 2, "a"}, {{b}, 1, "b"}}, after = {{{a, more}, 2, "a"}, {{b}, 1, "b"}};
  constexpr int64_t kCount = 45;
  const BlendSchedule schedule({2, 1});
  for (int64_t first = 0; first <= 30; ++first) {
    for (int64_t second = first; second <= kCount; second += 7) {
      std::vector<std::vector<int32_t>> streams;
      streams.push_back(tokens_of(expected_ids({{0, 7}, {schedule.count(0, first), 12}}, kCount, kSeed, "entry 0 ")));
      streams.push_back(tokens_of(expected_ids({{0, 3}}, kCount, kSeed, "entry 1 "), 1000));
      std::vector<int32_t> expected;
      std::vector<size_t> next(2, 0);
      for (int64_t k = 0; k < kCount; ++k) {
        const auto entry = static_cast<size_t>(schedule.draw(k).source);
        expected.push_back(streams[entry][next[entry]++]);
      }
      Saved saved;
      std::vector<int32_t> drawn = draw(before, saved, first);
      for (int64_t end : {second, kCount}) {
        const auto part = draw(after, saved, end);
        drawn.insert(drawn.end(), part.begin(), part.end());
      }
      ASSERT_EQ(drawn, expected) << "appended at " << first << ", stopped at " << second;
    }
  }
}

}  // namespace
}  // namespace penteract::data
