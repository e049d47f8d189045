#include "penteract/comm/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penteract::comm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Call numbered(uint64_t sequence) {
  Call call;
  call.operation = "all_gather";
  call.tag = "weights";
  call.dtype = at::kFloat;
  call.num_dims = 2;
  call.shape = {3, 4, 0, 0};
  call.payload_bytes = 48;
  call.sequence = sequence;
  call.cost = {96, 2};
  return call;
}

TEST(FlightRecorder, SaysWhatTheRankDoes) {
  const std::string tp = "tp";
  FlightRecorder recorder;
  EXPECT_EQ(recorder.summary(), "is not in communication and finished none so far");
  const uint64_t first = recorder.issued(numbered(7), tp);
  EXPECT_THAT(recorder.dump(), HasSubstr("issued"));
  recorder.waiting(first);
  EXPECT_THAT(recorder.summary(),
              AllOf(StartsWith("waits since"),
                    HasSubstr("in #7 of group tp: all_gather Float [3, 4], 48 bytes, tag 'weights'")));
  recorder.done(first);
  EXPECT_THAT(recorder.summary(), AllOf(StartsWith("is not in communication; finished"), HasSubstr("#7")));
}

TEST(FlightRecorder, KeepsTheLastRecordsInOrder) {
  const std::string tp = "tp";
  FlightRecorder recorder;
  const uint64_t first = recorder.issued(numbered(0), tp);
  for (uint64_t i = 1; i < 200; ++i) recorder.done(recorder.issued(numbered(i), tp));
  recorder.waiting(first);  // overwritten since: leaves the record in its place alone
  recorder.done(first);
  const std::string dump = recorder.dump();
  EXPECT_THAT(dump, AllOf(HasSubstr("#199 "), HasSubstr("#136 "), Not(HasSubstr("#135 ")), Not(HasSubstr("waits"))));
  EXPECT_LT(dump.find("#136 "), dump.find("#199 "));
}

TEST(FlightRecorder, CountsTrafficByGroupAndOperation) {
  const std::string tp = "tp", dp = "dp";
  FlightRecorder recorder;
  recorder.issued(numbered(0), tp);
  recorder.issued(numbered(1), tp);
  recorder.issued(numbered(0), dp);
  const std::vector<Traffic> traffic = recorder.traffic();
  ASSERT_EQ(traffic.size(), 2u);
  EXPECT_EQ(traffic[0].group, "dp");
  EXPECT_EQ(traffic[1].sent_bytes, 192);
  EXPECT_EQ(traffic[1].num_steps, 4);
  EXPECT_EQ(traffic[1].num_calls, 2);
  EXPECT_EQ(traffic[1].payload_bytes, 96);
}

TEST(FlightRecorder, ADescriptionCutsLongShapes) {
  Call call = numbered(0);
  call.num_dims = 6;
  call.shape = {1, 2, 3, 4};
  EXPECT_THAT(describe(call), HasSubstr("[1, 2, 3, 4, ...]"));
}

}  // namespace
}  // namespace penteract::comm
