#include <gtest/gtest.h>

#include <numeric>

#include "comm/values.h"
#include "penteract/base/check.h"
#include "penteract/comm/world.h"
#include "support/run_ranks.h"

namespace penteract::comm {
namespace {

using penteract::testing::run_ranks;
using testing::same_bits;
using testing::serial_sum;
using testing::values;

const int kWorlds[] = {1, 2, 3, 4, 8, 16};
const at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kBFloat16, at::kLong};

at::Tensor rows_of(const at::Tensor& t, int64_t begin, int64_t count) { return t.narrow(0, begin, count).contiguous(); }

// One case: the sizes and type of a tensor, with its sum and maximum over members 0..n-1.
struct Case {
  std::vector<int64_t> sizes;
  at::ScalarType dtype;
  at::Tensor sum, max;
};

std::vector<Case> cases_of(int n, const std::vector<std::vector<int64_t>>& all_sizes) {
  std::vector<Case> cases;
  for (const std::vector<int64_t>& sizes : all_sizes) {
    for (at::ScalarType dtype : kTypes) {
      cases.push_back({sizes, dtype, serial_sum(n, sizes, dtype), serial_sum(n, sizes, dtype, true)});
    }
  }
  return cases;
}

TEST(CollectivesRanks, AllReduceHasTheBitsOfASerialSum) {
  for (int n : kWorlds) {
    // Below, at and above what is sent directly; fewer elements than members; none; a scalar.
    const std::vector<Case> cases = cases_of(n, {{0}, {1}, {5}, {512}, {1031}, {7, 587}, {}});
    run_ranks(n, [&](RankContext& context) {
      for (const Case& each : cases) {
        at::Tensor sum = values(context.rank, each.sizes, each.dtype), max = sum.clone();
        context.world.all_reduce_sum(sum);
        EXPECT_TRUE(same_bits(sum, each.sum)) << n << " " << sum.numel() << " " << each.dtype;
        context.world.all_reduce_max(max);
        EXPECT_TRUE(same_bits(max, each.max)) << n << " " << sum.numel() << " " << each.dtype;
      }
    });
  }
}

TEST(CollectivesRanks, ReduceScatterAndAllGather) {
  for (int n : kWorlds) {
    const std::vector<Case> cases = cases_of(n, {{0, 5}, {n, 5}, {3 * n, 2}, {70 * n, 11}});
    run_ranks(n, [&](RankContext& context) {
      for (const Case& each : cases) {
        const int64_t rows = each.sizes[0] / n;
        const at::Tensor in = values(context.rank, each.sizes, each.dtype), before = in.clone();
        const at::Tensor part = context.world.reduce_scatter_sum(in);
        EXPECT_TRUE(same_bits(part, rows_of(each.sum, rows * context.rank, rows))) << n << " " << rows;
        EXPECT_TRUE(same_bits(context.world.all_gather(part), each.sum)) << n << " " << rows;
        EXPECT_TRUE(same_bits(in, before));  // inputs are left alone
      }
    });
  }
}

TEST(CollectivesRanks, IntoFormsWorkInPlaceAndApart) {
  for (int n : kWorlds) {
    const std::vector<Case> cases = cases_of(n, {{3 * n}, {1100 * n}});
    run_ranks(n, [&](RankContext& context) {
      for (const Case& each : cases) {
        const int64_t count = each.sizes[0] / n;
        at::Tensor in_place = values(context.rank, each.sizes, each.dtype), apart = in_place.clone();
        at::Tensor own = in_place.narrow(0, count * context.rank, count), out = at::empty({count}, each.dtype);
        context.world.reduce_scatter_into(in_place, own);
        context.world.reduce_scatter_into(apart, out);
        EXPECT_TRUE(same_bits(own, each.sum.narrow(0, count * context.rank, count)));
        EXPECT_TRUE(same_bits(own, out));
        at::Tensor gathered = at::empty({count * n}, each.dtype);
        context.world.all_gather_into(own, in_place);
        context.world.all_gather_into(out, gathered);
        EXPECT_TRUE(same_bits(in_place, each.sum));
        EXPECT_TRUE(same_bits(gathered, each.sum));
      }
    });
  }
}

TEST(CollectivesRanks, UnequalRows) {
  for (int n : kWorlds) {
    for (int64_t scale : {1, 400}) {
      std::vector<int64_t> rows;
      for (int i = 0; i < n; ++i) rows.push_back((i % 3) * scale);  // some have none
      const int64_t total = std::accumulate(rows.begin(), rows.end(), int64_t{0});
      const at::Tensor sum = serial_sum(n, {total, 3}, at::kBFloat16);
      run_ranks(n, [&](RankContext& context) {
        const int64_t begin = std::accumulate(rows.begin(), rows.begin() + context.rank, int64_t{0});
        const at::Tensor part = context.world.reduce_scatter_v(values(context.rank, {total, 3}, at::kBFloat16), rows);
        EXPECT_TRUE(same_bits(part, rows_of(sum, begin, rows[context.rank])));
        EXPECT_TRUE(same_bits(context.world.all_gather_v(part, rows), sum));
      });
    }
  }
}

TEST(CollectivesRanks, AllToAllMovesEachRowToItsMember) {
  for (int n : kWorlds) {
    run_ranks(n, [&](RankContext& context) {
      for (int64_t scale : {1, 300}) {
        const auto rows_from_to = [scale](int from, int to) { return scale * ((from * 5 + to * 3) % 4); };
        std::vector<int64_t> send, receive;
        for (int i = 0; i < n; ++i) {
          send.push_back(rows_from_to(context.rank, i));
          receive.push_back(rows_from_to(i, context.rank));
        }
        const int64_t total = std::accumulate(send.begin(), send.end(), int64_t{0});
        const at::Tensor in = values(context.rank, {total, 2}, at::kDouble);
        const at::Tensor out = context.world.all_to_all_v(in, send, receive);
        int64_t row = 0;
        for (int from = 0; from < n; ++from) {
          int64_t from_begin = 0, from_total = 0;
          for (int to = 0; to < n; ++to) {
            from_begin += to < context.rank ? rows_from_to(from, to) : 0;
            from_total += rows_from_to(from, to);
          }
          const at::Tensor theirs = values(from, {from_total, 2}, at::kDouble);
          EXPECT_TRUE(same_bits(rows_of(out, row, receive[from]), rows_of(theirs, from_begin, receive[from])));
          row += receive[from];
        }
        EXPECT_EQ(out.size(0), row);
        // The way back gives the input.
        EXPECT_TRUE(same_bits(context.world.all_to_all_v(out, receive, send), in));
      }
    });
  }
}

TEST(CollectivesRanks, BroadcastCountsFlagsAndBarrier) {
  for (int n : kWorlds) {
    run_ranks(n, [&](RankContext& context) {
      for (int64_t count : {1, 9000}) {
        for (int root : {0, n - 1}) {
          at::Tensor t = values(context.rank, {count}, at::kFloat);
          context.world.broadcast(t, root);
          EXPECT_TRUE(same_bits(t, values(root, {count}, at::kFloat)));
        }
      }
      context.world.barrier();
      const std::vector<int64_t> all = context.world.all_gather_int64({context.rank, -context.rank});
      EXPECT_EQ(all.size(), static_cast<size_t>(2 * n));
      for (int i = 0; i < n; ++i) EXPECT_EQ(all.at(2 * i) - all.at(2 * i + 1), 2 * i);
      EXPECT_FALSE(context.world.agree_any(false));
      EXPECT_TRUE(context.world.agree_any(context.rank == n - 1));
    });
  }
}

TEST(CollectivesRanks, GroupsWorkAtOnceAndInAnyOrderOfMaking) {
  run_ranks(16, [](RankContext& context) {
    const int rank = context.rank;
    const std::vector<int> row{rank / 4 * 4, rank / 4 * 4 + 1, rank / 4 * 4 + 2, rank / 4 * 4 + 3};
    const std::vector<int> column{rank % 4, rank % 4 + 4, rank % 4 + 8, rank % 4 + 12};
    // Members make their groups in different orders.
    Group rows, columns;
    if (rank % 2 == 0) rows = context.make_group(row, "row");
    columns = context.make_group(column, "column");
    if (rank % 2 != 0) rows = context.make_group(row, "row");
    EXPECT_EQ(rows.rank(rows.index()), rank);
    EXPECT_EQ(columns.ranks(), column);
    EXPECT_EQ(columns.name(), "column");
    for (int i = 0; i < 20; ++i) {
      at::Tensor t = at::empty({3000}, at::kLong);
      std::fill_n(t.data_ptr<int64_t>(), 3000, int64_t{1} << rank);
      rows.all_reduce_sum(t);
      columns.all_reduce_sum(t);
      EXPECT_EQ(t.data_ptr<int64_t>()[2999], 65535);
    }
    // The same list again is the same call order.
    at::Tensor one = values(rank, {2}, at::kLong), other = one.clone();
    const Group again = context.make_group(row, "other name");
    if (again.index() < 2) {
      rows.all_reduce_sum(one);
    } else {
      again.all_reduce_sum(one);
    }
    rows.all_reduce_sum(other);
    EXPECT_TRUE(same_bits(one, other));
  });
}

TEST(CollectivesRanks, AGroupOfOneReturnsItsInput) {
  run_ranks(2, [](RankContext& context) {
    const Group own = context.make_group({context.rank}, "own");
    const at::Tensor in = values(context.rank, {4}, at::kFloat);
    EXPECT_EQ(own.all_gather(in).data_ptr(), in.data_ptr());
    at::Tensor out = at::empty({4}, at::kFloat);
    own.all_gather_into(in, out);
    EXPECT_TRUE(same_bits(in, out));
    EXPECT_THROW(context.make_group({1 - context.rank}, "of others"), CheckFailure);
    EXPECT_THROW(context.make_group({1, 0}, "descending"), CheckFailure);
    EXPECT_THROW(Group().size(), CheckFailure);
  });
}

// A producer that ran ahead of its readers would give them the next round's numbers.
TEST(CollectivesRanks, BuffersMayBeWrittenAtOnceAfterACall) {
  for (int64_t count : {10, 4000}) {
    run_ranks(4, [count](RankContext& context) {
      at::Tensor t = at::empty({count}, at::kLong), gathered = at::empty({4 * count}, at::kLong);
      for (int64_t round = 0; round < 200; ++round) {
        std::fill_n(t.data_ptr<int64_t>(), count, round * 4 + context.rank);
        context.world.all_gather_into(t, gathered);
        std::fill_n(t.data_ptr<int64_t>(), count, -round);
        for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(gathered.data_ptr<int64_t>()[(i + 1) * count - 1], round * 4 + i);
        context.world.all_reduce_sum(t);
        EXPECT_EQ(t.data_ptr<int64_t>()[count - 1], -4 * round);
        EXPECT_EQ(t.data_ptr<int64_t>()[0], -4 * round);
      }
    });
  }
}

TEST(CollectivesRanks, ManySmallCallsInARow) {
  run_ranks(4, [](RankContext& context) {
    for (int64_t i = 0; i < 3000; ++i) {
      const std::vector<int64_t> all = context.world.all_gather_int64({i * 10 + context.rank});
      for (int member = 0; member < 4; ++member) EXPECT_EQ(all[member], i * 10 + member);
    }
  });
}

}  // namespace
}  // namespace penteract::comm
