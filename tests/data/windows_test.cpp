#include "penteract/data/windows.h"

#include <gtest/gtest.h>

#include <optional>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "data/temp_folder.h"
#include "penteract/base/rng.h"

namespace penteract::data {
namespace {

class Windows : public ::testing::Test {
 protected:
  // A dataset of the ids first, first + 1, …
  std::shared_ptr<const IndexedDataset> dataset(int32_t first, int32_t count) {
    const std::string prefix = folder_.path("d" + std::to_string(num_datasets_++));
    auto writer = or_throw(IndexedDatasetWriter::create(prefix, TokenDtype::i32));
    std::vector<int32_t> ids(static_cast<size_t>(count));
    std::iota(ids.begin(), ids.end(), first);
    or_throw(writer->add_document(ids));
    or_throw(writer->finish());
    return or_throw(IndexedDataset::open(prefix));
  }
  static std::vector<int32_t> sample(const TrainingWindows& w, int64_t k) {
    std::vector<int32_t> out(static_cast<size_t>(w.seq_length()) + 1);
    or_throw(w.sample(k, out.data()));
    return out;
  }
  static TrainingWindows make(const DatasetList& datasets, int64_t seq_length, uint64_t seed = 1234) {
    return or_throw(TrainingWindows::create({{datasets, 1, "train"}}, seq_length, seed));
  }

  TempFolder folder_;
  int num_datasets_ = 0;
};

TEST_F(Windows, EachSharesItsLastTokenWithTheNext) {
  const DatasetList list = {dataset(0, 13), dataset(13, 10)};
  const auto windows = or_throw(EvalWindows::create(list, 4, "valid"));
  EXPECT_EQ(windows.num_windows(), 5);  // (23 - 1) / 4
  EXPECT_EQ(windows.num_left_over(), 2);
  std::vector<int32_t> out(5);
  for (int32_t i = 0; i < 5; ++i) {
    or_throw(windows.window(i, out.data()));
    std::vector<int32_t> expected(5);
    std::iota(expected.begin(), expected.end(), 4 * i);
    EXPECT_EQ(out, expected);
  }
}

TEST_F(Windows, TooFewTokensAreRefused) {
  EXPECT_EQ(EvalWindows::create({dataset(0, 4)}, 4, "valid").error().code, ErrorCode::dataset_empty);
  EXPECT_TRUE(EvalWindows::create({dataset(0, 5)}, 4, "valid").ok());
  EXPECT_EQ(TrainingWindows::create({{{dataset(0, 4)}, 1, "train"}}, 4, 1).error().code, ErrorCode::dataset_empty);
}

// A3: every epoch shows every window once, in an order of its own.
TEST_F(Windows, EveryEpochIsAPermutation) {
  const auto windows = make({dataset(0, 45)}, 4);
  ASSERT_EQ(windows.num_windows(), 11);
  std::set<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < 11; ++i) {
      const auto place = windows.place(epoch * 11 + i);
      EXPECT_EQ(place.epoch, epoch);
      order.push_back(place.window);
      EXPECT_EQ(sample(windows, epoch * 11 + i)[0], 4 * place.window);
    }
    orders.insert(order);
    std::sort(order.begin(), order.end());
    std::vector<int64_t> expected(11);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(order, expected);
  }
  EXPECT_EQ(orders.size(), 3u);
}

TEST_F(Windows, TheOrderIsTheDocumentedFormula) {
  const auto windows = make({dataset(0, 45)}, 4, 77);
  for (int64_t k = 0; k < 40; ++k) {
    const auto key = philox_key(77, "epoch " + std::to_string(k / 11));
    EXPECT_EQ(windows.place(k).window, static_cast<int64_t>(permute_index(key, 11, static_cast<uint64_t>(k % 11))));
  }
}

// A5, A6: a run that stops anywhere and goes on, twice, and at an epoch's end, reads what the unbroken run reads.
TEST_F(Windows, ResumedRunsReadTheSameSamples) {
  const DatasetList list = {dataset(0, 22), dataset(100, 9)};  // 7 windows
  const auto unbroken = make(list, 4);
  ASSERT_EQ(unbroken.num_windows(), 7);
  std::vector<std::vector<int32_t>> expected;
  for (int64_t k = 0; k < 28; ++k) expected.push_back(sample(unbroken, k));
  for (int64_t stop = 0; stop <= 28; ++stop) {
    std::string saved = unbroken.plan().to_json();
    for (int64_t next = stop; next <= 28; next += 5) {  // a chain of resumes
      const auto plan = or_throw(DataPlan::from_json(saved, "checkpoint"));
      const auto resumed = or_throw(TrainingWindows::create({{list, 1, "train"}}, 4, 1234, plan, next));
      for (int64_t k = next; k < 28; ++k)
        ASSERT_EQ(sample(resumed, k), expected[static_cast<size_t>(k)]) << stop << " " << k;
      saved = resumed.plan().to_json();
    }
  }
}

TEST_F(Windows, AppendedDataJoinsAtTheNextEpoch) {
  const auto a = dataset(0, 29);  // 7 windows
  const auto b = dataset(1000, 21);
  const auto before = make({a}, 4);
  for (int64_t next : {0, 1, 6, 7, 8, 13, 14}) {
    const auto after = or_throw(TrainingWindows::create({{{a, b}, 1, "train"}}, 4, 1234, before.plan(), next));
    const int64_t joined = (next + 6) / 7;  // the first epoch of which nothing was drawn
    for (int64_t k = 0; k < 7 * joined; ++k) EXPECT_EQ(sample(after, k), sample(before, k)) << next;
    std::set<int64_t> seen;
    for (int64_t i = 0; i < 12; ++i) {  // (29 + 21 - 1) / 4
      const auto place = after.place(7 * joined + i);
      EXPECT_EQ(place.epoch, joined);
      seen.insert(place.window);
    }
    EXPECT_EQ(seen.size(), 12u);
    // The next resume without a change keeps it all.
    const auto again = or_throw(TrainingWindows::create({{{a, b}, 1, "train"}}, 4, 1234, after.plan(), next + 3));
    EXPECT_EQ(again.plan().to_json(), after.plan().to_json());
  }
}

TEST_F(Windows, AGrowingSourceJoinsAtTheNextEpoch) {
  const auto small = dataset(0, 29), large = dataset(0, 41), tail = dataset(500, 9);
  const auto before = make({small, tail}, 4);
  const auto after = or_throw(TrainingWindows::create({{{large, tail}, 1, "train"}}, 4, 1234, before.plan(), 5));
  for (int64_t k = 0; k < 9; ++k) EXPECT_EQ(sample(after, k), sample(before, k));
  EXPECT_EQ(after.place(9).num_windows, 12);
  // Grown once more before that epoch began: it takes the place of what was to come.
  const auto larger = dataset(0, 61);
  const auto third = or_throw(TrainingWindows::create({{{larger, tail}, 1, "train"}}, 4, 1234, after.plan(), 7));
  EXPECT_EQ(third.plan().entries[0].stages.size(), 2u);
  EXPECT_EQ(third.place(9).num_windows, 17);
}

TEST_F(Windows, OtherChangesAreRefused) {
  const auto a = dataset(0, 29), other = dataset(5, 29), less = dataset(0, 25);
  const auto plan = make({a, a}, 4).plan();
  const auto code = [&](const DatasetList& list, double weight, int64_t seq_length) -> std::optional<ErrorCode> {
    const auto windows = TrainingWindows::create({{list, weight, "train"}}, seq_length, 1234, plan, 3);
    if (windows.ok()) return std::nullopt;
    return windows.error().code;
  };
  EXPECT_EQ(code({a, a}, 1, 4), std::nullopt);
  EXPECT_EQ(code({a}, 1, 4), ErrorCode::recipe_changed);
  EXPECT_EQ(code({a, other}, 1, 4), ErrorCode::recipe_changed);
  EXPECT_EQ(code({a, less}, 1, 4), ErrorCode::recipe_changed);
  EXPECT_EQ(code({a, a}, 2, 4), ErrorCode::recipe_changed);
  EXPECT_EQ(code({a, a}, 1, 5), ErrorCode::recipe_changed);
}

TEST_F(Windows, ABlendGivesEachSourceItsShareAndItsEpochs) {
  const auto windows = or_throw(
      TrainingWindows::create({{{dataset(0, 21)}, 3, "a"}, {{dataset(1000, 13)}, 1, "b"}}, 4, 9));  // 5 and 3 windows
  std::map<int64_t, std::map<std::pair<int64_t, int64_t>, int>> seen;
  std::vector<int64_t> counts(2, 0);
  for (int64_t k = 0; k < 60; ++k) {
    const auto place = windows.place(k);
    ++counts[static_cast<size_t>(place.entry)];
    ++seen[place.entry][{place.epoch, place.window}];
    EXPECT_EQ(sample(windows, k)[0], place.entry * 1000 + 4 * place.window);
    EXPECT_NEAR(static_cast<double>(counts[0]), 0.75 * static_cast<double>(k + 1), 1.0);
  }
  EXPECT_EQ(seen[0].size(), 45u);  // 9 epochs of 5
  EXPECT_EQ(seen[1].size(), 15u);  // 5 epochs of 3
  EXPECT_EQ(TrainingWindows::create({{{dataset(0, 21)}, 0, "a"}}, 4, 9).error().code, ErrorCode::recipe_range);
}

TEST(BlendSchedule, IsAPureFunctionThatMeetsItsShares) {
  const BlendSchedule schedule({0.5, 0.3, 0.15, 0.05, 1e-9});
  EXPECT_EQ(std::accumulate(schedule.shares().begin(), schedule.shares().end(), int64_t{0}), BlendSchedule::kPeriod);
  EXPECT_EQ(schedule.shares()[4], 1);
  std::vector<int64_t> counts(5, 0);
  for (int64_t k = 0; k < BlendSchedule::kPeriod + 1000; ++k) {
    const auto draw = schedule.draw(k);
    if (k % 997 == 0) {
      for (int64_t s = 0; s < 5; ++s) ASSERT_EQ(schedule.count(s, k), counts[static_cast<size_t>(s)]);
    }
    ASSERT_EQ(draw.index, counts[static_cast<size_t>(draw.source)]++);
    for (size_t s = 0; s < 5; ++s) {
      const double share = static_cast<double>(schedule.shares()[s]) / static_cast<double>(BlendSchedule::kPeriod);
      ASSERT_NEAR(static_cast<double>(counts[s]), share * static_cast<double>(k + 1), 2.0) << s << " " << k;
    }
  }
  // Far into a run: past 2^40 samples.
  const int64_t far = (int64_t{1} << 40) + 12345;
  EXPECT_EQ(schedule.draw(far).index, schedule.count(schedule.draw(far).source, far));
  EXPECT_EQ(BlendSchedule({2.0}).draw(far).index, far);
}

TEST(DataPlan, DamagedPlansAreRefused) {
  const DataPlan plan{4, {{1.5, {{0, {10, 20}, {"x", "y"}}, {3, {11, 20}, {"z", "y"}}}}}};
  const auto back = or_throw(DataPlan::from_json(plan.to_json(), "c"));
  EXPECT_EQ(back.to_json(), plan.to_json());
  EXPECT_EQ(back.entries[0].stages[1].source_tokens, (std::vector<int64_t>{11, 20}));
  for (
      const char* text :
      {"", "{}", "[]", R"({"seq_length": 4, "entries": []})",
       R"({"seq_length": -4, "entries": [{"weight": 1, "stages": []}]})",
       R"({"seq_length": 4, "entries": [{"weight": 1, "stages": []}]})",
       R"({"seq_length": 4, "entries": [{"weight": 1, "stages": [{"first_epoch": 1, "sources": [{"tokens": 9, "hash": ""}]}]}]})",
       R"({"seq_length": 4, "entries": [{"weight": 1, "stages": [{"first_epoch": 0, "sources": [{"tokens": -9, "hash": ""}]}]}]})",
       R"({"seq_length": 4, "entries": [{"weight": 1, "stages": [{"first_epoch": 0, "sources": []}]}]})"}) {
    const auto parsed = DataPlan::from_json(text, "c");
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::checkpoint_malformed);
  }
}

}  // namespace
}  // namespace penteract::data
