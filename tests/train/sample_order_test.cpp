// The rows that all ranks of a step read together are the run's next samples, whatever dp, micro and global batch are,
// and also where a resume changes them. Brute force over pairs of batches and pairs of stops.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "data/sample_stream.h"
#include "penteract/model/batch.h"

namespace penteract::train {
namespace {

constexpr int64_t kSeqLength = 4, kNumWindows = 7;
constexpr uint64_t kSeed = 1234;

struct Batch {
  int dp;
  int64_t micro, global;
};

// The first token of every row of the global batch, put together from the micro-batches of all dp ranks.
std::vector<int64_t> rows_of_step(const data::TrainingWindows& windows, int64_t first_sample, const Batch& batch) {
  topology::Layout layout;
  layout.dp = layout.edp = batch.dp;
  std::vector<int64_t> rows(static_cast<size_t>(batch.global), -1);
  for (int dp = 0; dp < batch.dp; ++dp) {
    topology::Coord coord;
    coord.dp = coord.edp = dp;
    const auto batches = model::make_micro_batches({kSeqLength, kSeqLength, batch.global, batch.micro}, layout, coord,
                                                   [&](int64_t row, model::Row& out) {
                                                     or_throw(windows.sample(first_sample + row, out.tokens.data()));
                                                     return true;
                                                   });
    for (size_t m = 0; m < batches.size(); ++m) {
      for (int64_t b = 0; b < batch.micro; ++b) {
        int64_t& row = rows.at(static_cast<size_t>((static_cast<int64_t>(m) * batch.dp + dp) * batch.micro + b));
        EXPECT_EQ(row, -1) << "a row stands in two micro-batches";
        row = batches[m].ids.data_ptr<int64_t>()[b];
      }
    }
  }
  return rows;
}

TEST(SampleOrder, NoBatchAndNoPairOfStopsChangesIt) {
  const data::TempFolder folder;
  const std::vector<data::TrainingWindows::Entry> entries = {
      {{data::counting_dataset(folder, 0, kSeqLength * kNumWindows + 3)}, 1, "train"}};
  constexpr int64_t kCount = 17;  // at least two epochs and a half
  std::vector<int64_t> expected;
  for (const auto& id : data::expected_ids({{0, kNumWindows}}, kCount + 32, kSeed)) {
    expected.push_back(id.window * kSeqLength);
  }
  // Some end an epoch with a step (1, 7), others do not; 8 and 16 are larger than an epoch.
  const std::vector<Batch> batches = {{1, 1, 1}, {3, 1, 3}, {1, 2, 4}, {2, 1, 4},
                                      {2, 3, 6}, {7, 1, 7}, {1, 1, 8}, {4, 2, 16}};
  for (const Batch& before : batches) {
    for (const Batch& between : batches) {
      for (int64_t first = 0; first * before.global <= kCount; ++first) {
        for (int64_t second : {0, 1, 2}) {
          std::string plan;
          int64_t samples = 0;
          std::vector<int64_t> read;
          for (const auto& [batch, num_steps] : {std::pair{before, first}, {between, second}, {before, int64_t{20}}}) {
            const auto windows = or_throw(data::TrainingWindows::create(
                entries, kSeqLength, kSeed,
                plan.empty() ? std::nullopt : std::optional(or_throw(data::DataPlan::from_json(plan, "checkpoint"))),
                samples));
            for (int64_t step = 0; step < num_steps && samples < kCount; ++step) {
              const auto rows = rows_of_step(windows, samples, batch);
              read.insert(read.end(), rows.begin(), rows.end());
              samples += batch.global;
            }
            plan = windows.plan().to_json();
          }
          ASSERT_GE(read.size(), static_cast<size_t>(kCount));
          const std::vector<int64_t> as_expected(expected.begin(),
                                                 expected.begin() + static_cast<int64_t>(read.size()));
          ASSERT_EQ(read, as_expected) << fmt::format(
              "dp {} micro {} global {} for {} steps, dp {} micro {} global {} for {}, and on", before.dp, before.micro,
              before.global, first, between.dp, between.micro, between.global, second);
        }
      }
    }
  }
}

}  // namespace
}  // namespace penteract::train
