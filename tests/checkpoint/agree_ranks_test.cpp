#include "penteract/checkpoint/agree.h"

#include <gtest/gtest.h>

#include "support/run_ranks.h"

namespace penteract::checkpoint {
namespace {

TEST(AgreeRanks, AllOkIsOk) {
  testing::run_ranks(4, [](comm::RankContext& context) { EXPECT_TRUE(agree(context.world, {}).ok()); });
}

TEST(AgreeRanks, TheFirstErrorIsEveryones) {
  testing::run_ranks(4, [](comm::RankContext& context) {
    Status mine;
    if (context.rank >= 2) {
      mine = Error{context.rank == 2 ? ErrorCode::storage_full : ErrorCode::storage_write,
                   "no space for " + std::to_string(context.rank), "file", "free some"};
    }
    const Status agreed = agree(context.world, mine);
    EXPECT_FALSE(agreed.ok());
    if (agreed.ok()) return;
    EXPECT_EQ(agreed.error().code, ErrorCode::storage_full);
    EXPECT_EQ(agreed.error().what, "no space for 2");
    EXPECT_EQ(agreed.error().culprit, "rank 2: file");
    EXPECT_EQ(agreed.error().remedy, "free some");
  });
}

TEST(AgreeRanks, TextOfOneIsTheTextOfAll) {
  testing::run_ranks(3, [](comm::RankContext& context) {
    const std::string mine = context.rank == 1 ? std::string("a\0b\xff", 4) : "ignored";
    EXPECT_EQ(broadcast_text(context.world, mine, 1), std::string("a\0b\xff", 4));
    EXPECT_EQ(broadcast_text(context.world, context.rank == 0 ? "" : "ignored"), "");
  });
}

}  // namespace
}  // namespace penteract::checkpoint
