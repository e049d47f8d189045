#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/values.h"
#include "penteract/base/check.h"
#include "penteract/comm/error.h"
#include "penteract/comm/world.h"
#include "support/run_ranks.h"

namespace penteract::comm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;
using testing::values;

// Runs ranks that must fail, within two seconds, and returns the one cause.
Error failure_of(int num_ranks, const std::function<Status(RankContext&)>& fn,
                 WorldOptions options = penteract::testing::test_world_options()) {
  const auto start = std::chrono::steady_clock::now();
  Status status = run_rank_threads(num_ranks, std::move(options), fn);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
  EXPECT_FALSE(status.ok());
  return status.ok() ? Error{ErrorCode::invalid_argument, "did not fail", "", ""} : status.take_error();
}

// All but rank 2 wait in an all-reduce for ever; rank 2 does `act`.
Error failure_while_others_wait(const std::function<Status(RankContext&)>& act, std::atomic<int>* num_ended = nullptr) {
  return failure_of(8, [&](RankContext& context) -> Status {
    if (context.rank == 2) {
      std::this_thread::sleep_for(100ms);
      return act(context);
    }
    at::Tensor t = values(context.rank, {3000}, at::kFloat);
    try {
      context.world.all_reduce_sum(t, {.tag = "wait"});
    } catch (const CommError& e) {
      EXPECT_THAT(e.error().culprit, ::testing::StartsWith("rank 2"));
      EXPECT_THAT(e.error().what, HasSubstr("ended by another rank's failure"));
      if (num_ended != nullptr) ++*num_ended;
      throw;
    }
    ADD_FAILURE() << "an all-reduce without rank 2 ended";
    return {};
  });
}

TEST(FailuresRanks, AnyExceptionOfOneRankEndsTheOthers) {
  std::atomic<int> num_ended = 0;
  Error error = failure_while_others_wait([](RankContext&) -> Status { throw std::runtime_error("lost"); }, &num_ended);
  EXPECT_EQ(error.code, ErrorCode::defect);
  EXPECT_EQ(error.culprit, "rank 2");
  EXPECT_EQ(error.what, "lost");
  EXPECT_EQ(num_ended, 7);

  error = failure_while_others_wait([](RankContext&) -> Status {
    PENT_CHECK_EQ(1, 2);
    return {};
  });
  EXPECT_EQ(error.code, ErrorCode::defect);
  EXPECT_THAT(error.what, AllOf(HasSubstr("1 against 2"), HasSubstr("rank 2")));

  error = failure_while_others_wait([](RankContext&) -> Status { throw 7; });
  EXPECT_EQ(error.code, ErrorCode::defect);

  error = failure_while_others_wait([](RankContext&) -> Status {
    values(0, {3}, at::kFloat).add_(values(0, {4}, at::kFloat));
    return {};
  });
  EXPECT_EQ(error.code, ErrorCode::defect);
  EXPECT_THAT(error.what, HasSubstr("size of tensor"));
}

TEST(FailuresRanks, AnErrorKeepsItsCodeAndCulprit) {
  const Error lost{ErrorCode::checkpoint_damaged, "checksum differs", "w.safetensors", "take another"};
  Error error = failure_while_others_wait([&](RankContext&) -> Status { return lost; });
  EXPECT_EQ(error.code, ErrorCode::checkpoint_damaged);
  EXPECT_EQ(error.culprit, "rank 2, w.safetensors");
  EXPECT_EQ(error.remedy, "take another");
  error = failure_while_others_wait([&](RankContext&) -> Status { throw ErrorException(lost); });
  EXPECT_EQ(error.code, ErrorCode::checkpoint_damaged);
}

TEST(FailuresRanks, OutOfMemoryNamesTheRankItsBytesAndTheRemedy) {
  const Error error = failure_while_others_wait([](RankContext& context) -> Status {
    context.memory.set_limit_bytes(context.memory.current_bytes() + (1 << 20));
    MemoryKindScope scope(MemoryKind::gradients);
    values(0, {1 << 20}, at::kFloat);
    return {};
  });
  EXPECT_EQ(error.code, ErrorCode::out_of_memory);
  EXPECT_EQ(exit_code(error.code), ExitCode::layout);
  EXPECT_EQ(error.culprit, "rank 2");
  EXPECT_THAT(error.what, AllOf(HasSubstr("4.00 MiB of gradients"), HasSubstr("limit 1.00 MiB"), HasSubstr("allocated"),
                                HasSubstr("peak"), HasSubstr("the largest")));
  EXPECT_THAT(error.remedy, HasSubstr("batch.micro"));
}

TEST(FailuresRanks, AFailureReachesPendingMessagesAndLaterCalls) {
  std::atomic<int> num_ended = 0;
  const Error error = failure_of(4, [&](RankContext& context) -> Status {
    at::Tensor t = values(context.rank, {5000}, at::kFloat);
    if (context.rank == 0) {
      std::this_thread::sleep_for(100ms);
      throw std::runtime_error("lost");
    }
    if (context.rank == 3) std::this_thread::sleep_for(500ms);
    try {
      if (context.rank == 1) context.world.send(t, 0, 0).wait();
      if (context.rank == 2) context.world.recv_into(t, 0, 0).wait();
      if (context.rank == 3) context.world.barrier();
    } catch (const CommError&) {
      ++num_ended;
    }
    return {};
  });
  EXPECT_EQ(error.what, "lost");
  EXPECT_EQ(num_ended, 3);
}

TEST(FailuresRanks, UnwindingLeavesHandlesInFlightSafely) {
  for (int round = 0; round < 20; ++round) {
    const Error error = failure_of(3, [](RankContext& context) -> Status {
      at::Tensor t = values(context.rank, {50000}, at::kFloat), u = values(context.rank, {50000}, at::kFloat);
      Handle reduce = context.world.all_reduce_sum_async(t);
      Handle send = context.world.send(u, (context.rank + 1) % 3, 0);
      if (context.rank == 1) throw std::runtime_error("lost");
      reduce.wait();
      return {};
    });
    EXPECT_EQ(error.what, "lost");
  }
}

TEST(FailuresRanks, ADeadlineNamesTheCallTheMissingAndWhatEachDoes) {
  WorldOptions options = penteract::testing::test_world_options();
  options.deadline = 200ms;
  std::string records;
  options.on_flight_records = [&](const std::string& text) { records = text; };
  const Error error = failure_of(
      4,
      [](RankContext& context) -> Status {
        const Group even = context.rank % 2 == 0 ? context.make_group({0, 2}, "even") : Group();
        context.world.barrier();
        at::Tensor t = values(context.rank, {10, 300}, at::kBFloat16);
        if (context.rank == 1) std::this_thread::sleep_for(700ms);
        if (context.rank == 3) {
          at::Tensor u = at::empty({1}, at::kFloat);
          context.world.recv_into(u, 1, 77, {.tag = "activations", .deadline = 5s}).wait();
        }
        context.world.all_reduce_sum(t, {.tag = "gradients"});
        return {};
      },
      options);
  EXPECT_EQ(error.code, ErrorCode::comm_deadline);
  EXPECT_EQ(exit_code(error.code), ExitCode::comm);
  EXPECT_THAT(error.culprit, ::testing::AnyOf("rank 0", "rank 2"));
  EXPECT_THAT(error.what,
              AllOf(HasSubstr("#1 of group world (ranks 0, 1, 2, 3)"), HasSubstr("all_reduce_sum BFloat16 [10, 300]"),
                    HasSubstr("6000 bytes"), HasSubstr("tag 'gradients'"), HasSubstr("waited 0.2 s"),
                    HasSubstr("missing: ranks 1, 3")));
  EXPECT_THAT(error.what,
              AllOf(HasSubstr("rank 1 is not in communication; finished"), HasSubstr("barrier"),
                    HasSubstr("rank 3 waits since"), HasSubstr("receive Float [1]"), HasSubstr("tag 'activations'")));
  EXPECT_THAT(error.remedy, HasSubstr("comm.deadline"));
  EXPECT_THAT(records, AllOf(HasSubstr("rank 0"), HasSubstr("rank 3"), HasSubstr("barrier")));
}

TEST(FailuresRanks, TheDeadlineHoldsForMessagesAndSubgroups) {
  WorldOptions options = penteract::testing::test_world_options();
  options.deadline = 150ms;
  for (int which : {0, 1, 2}) {
    const Error error = failure_of(
        3,
        [which](RankContext& context) -> Status {
          at::Tensor t = values(context.rank, {5000}, at::kFloat);
          if (context.rank == 2) {
            std::this_thread::sleep_for(500ms);
          } else if (context.rank == 1) {
            if (which == 0) context.world.send(t, 2, 4).wait();
            if (which == 1) context.world.recv_into(t, 2, 4).wait();
            if (which == 2) context.make_group({1, 2}, "pair").barrier();
          }
          return {};
        },
        options);
    EXPECT_EQ(error.code, ErrorCode::comm_deadline);
    EXPECT_THAT(error.what, HasSubstr("missing: rank 2"));
  }
}

TEST(FailuresRanks, WaitingUnderNoDeadlineIsNotALimitOnWork) {
  WorldOptions options = penteract::testing::test_world_options();
  options.deadline = 200ms;
  // Work before a call may take longer than the deadline, when all do it.
  penteract::testing::run_ranks(2, options, [](RankContext& context) {
    std::this_thread::sleep_for(300ms);
    context.world.barrier({.deadline = 5s});
  });
}

TEST(FailuresRanks, DifferentOperationsNameBoth) {
  const Error error = failure_of(4, [](RankContext& context) -> Status {
    at::Tensor t = values(context.rank, {8}, at::kFloat);
    if (context.rank == 3) {
      context.world.all_gather(t);
    } else {
      context.world.all_reduce_sum(t);
    }
    return {};
  });
  EXPECT_EQ(error.code, ErrorCode::comm_failed);
  EXPECT_THAT(error.what, AllOf(HasSubstr("#0 of group world"), HasSubstr("rank 0: all_reduce_sum Float [8]"),
                                HasSubstr("rank 3: all_gather Float [8]")));
}

TEST(FailuresRanks, DifferentSizesAndTypesNameBoth) {
  for (int64_t count : {4, 4000}) {
    Error error = failure_of(3, [count](RankContext& context) -> Status {
      at::Tensor t = values(context.rank, {context.rank == 1 ? count + 1 : count}, at::kFloat);
      context.world.all_reduce_sum(t);
      return {};
    });
    EXPECT_THAT(error.what, AllOf(HasSubstr(fmt::format("[{}]", count)),
                                  HasSubstr(fmt::format("rank 1: all_reduce_sum Float [{}]", count + 1))));
    error = failure_of(3, [count](RankContext& context) -> Status {
      at::Tensor t = values(context.rank, {count}, context.rank == 1 ? at::kDouble : at::kFloat);
      context.world.all_reduce_sum(t);
      return {};
    });
    EXPECT_THAT(error.what, AllOf(HasSubstr("Float"), HasSubstr("rank 1: all_reduce_sum Double")));
  }
  Error error = failure_of(2, [](RankContext& context) -> Status {
    const at::Tensor t = values(context.rank, {6, 2}, at::kFloat);
    context.world.all_to_all_v(t, {3, 3}, {3, context.rank == 0 ? 3 : 2});
    return {};
  });
  EXPECT_THAT(error.what,
              AllOf(HasSubstr("rank 1 sends 24 bytes to rank 1, which expects 16"), HasSubstr("all_to_all_v")));
  error = failure_of(2, [](RankContext& context) -> Status {
    at::Tensor t = values(0, {context.rank == 0 ? 5 : 6}, at::kFloat);
    if (context.rank == 0) {
      context.world.send(t, 1, 2).wait();
      context.world.barrier();
    } else {
      context.world.recv_into(t, 0, 2).wait();
    }
    return {};
  });
  EXPECT_THAT(error.what, AllOf(HasSubstr("rank 0: send Float [5]"), HasSubstr("rank 1: receive Float [6]")));
}

TEST(FailuresRanks, ARankThatEndsWithoutItsCallIsNamedAtOnce) {
  const Error error = failure_of(3, [](RankContext& context) -> Status {
    if (context.rank != 1) context.world.barrier();
    return {};
  });
  EXPECT_EQ(error.code, ErrorCode::comm_failed);
  EXPECT_THAT(error.what, AllOf(HasSubstr("missing: rank 1"), HasSubstr("it has ended")));
}

TEST(FailuresRanks, AWriteIntoAPublishedBufferIsFound) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the write is a race, which the sanitizer reports first";
#endif
  // By the producer, in a collective and in a message; by a peer.
  for (int which : {0, 1, 2}) {
    std::atomic<float*> published = nullptr;
    const Error error = failure_of(2, [&](RankContext& context) -> Status {
      at::Tensor in = values(context.rank, {5000}, at::kFloat), out = at::empty({10000}, at::kFloat);
      if (which == 0) {
        Handle handle = context.world.all_gather_into_async(in, out);
        if (context.rank == 1) in.data_ptr<float>()[4321] += 1;
        handle.wait();
      } else if (which == 1) {
        if (context.rank == 1) {
          Handle handle = context.world.send(in, 0, 0);
          in.data_ptr<float>()[4321] += 1;
          handle.wait();
        } else {
          context.world.recv_into(in, 1, 0).wait();
          context.world.barrier();
        }
      } else {
        if (context.rank == 1) published = in.data_ptr<float>();
        Handle handle = context.world.all_gather_into_async(in, out);
        context.world.barrier();
        if (context.rank == 0) published.load()[4321] += 1;
        context.world.barrier();
        handle.wait();
      }
      return {};
    });
    EXPECT_EQ(error.code, ErrorCode::comm_failed);
    EXPECT_EQ(error.culprit, "rank 1");
    EXPECT_THAT(error.what, AllOf(HasSubstr("the bytes that rank 1 published for rank 0 were written"),
                                  HasSubstr(which == 1 ? "send" : "all_gather")));
  }
}

TEST(FailuresRanks, SuccessCallsNoRecordsAndOneRankMayFailAlone) {
  WorldOptions options = penteract::testing::test_world_options();
  int num_records = 0;
  options.on_flight_records = [&](const std::string&) { ++num_records; };
  penteract::testing::run_ranks(2, options, [](RankContext& context) {
    context.world.barrier();
    EXPECT_THAT(context.flight_records(), HasSubstr("barrier"));
    EXPECT_EQ(current_rank(), context.rank);
    EXPECT_EQ(current_account(), &context.memory);
    context.world.barrier();
  });
  EXPECT_EQ(num_records, 0);
  EXPECT_EQ(current_rank(), -1);
}

}  // namespace
}  // namespace penteract::comm
