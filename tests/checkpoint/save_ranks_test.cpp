#include "penteract/checkpoint/save.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "fixture.h"
#include "penteract/checkpoint/agree.h"
#include "penteract/checkpoint/find.h"
#include "penteract/checkpoint/reader.h"
#include "penteract/checkpoint/verify.h"
#include "support/run_ranks.h"

namespace penteract::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::run_ranks;

TEST(SaveRanks, FourRanksWriteAndAnyNumberReads) {
  const TempDir dir;
  run_ranks(4, [&](comm::RankContext& context) {
    or_throw(save(context.world, dir.path(), test_state(10, 0), test_pieces(context.rank, 4, 100), 2));
  });
  EXPECT_TRUE(verify(dir / "step-00000010")->ok());
  // Written by ranks or by one thread, the bytes are the same.
  const TempDir alone;
  ASSERT_TRUE(write_step(alone.path(), 10, 4, 100).ok());
  for (const auto& entry : fs::directory_iterator(alone / "step-00000010")) {
    const std::string name = entry.path().filename();
    EXPECT_EQ(slurp(entry.path()), slurp(join_path(dir / "step-00000010", name))) << name;
  }
  for (const int num_readers : {1, 3}) {
    run_ranks(num_readers, [&](comm::RankContext& context) {
      const auto path = or_throw(find_newest(context.world, dir.path(), nullptr));
      EXPECT_TRUE(path.has_value());
      const auto reader = or_throw(Reader::open(*path));
      for (const Piece& piece : test_pieces(context.rank, num_readers, 100)) {
        at::Tensor out = at::empty(piece.slice.size, piece.data.options());
        or_throw(reader->read(piece.tensor, piece.slice, out));
        EXPECT_TRUE(out.equal(piece.data.view(piece.slice.size))) << piece.tensor << piece.slice.to_string();
      }
    });
  }
}

TEST(SaveRanks, AFailureOfOneRankIsAgreedAndLeavesTheOldCheckpoint) {
  const TempDir dir;
  ASSERT_TRUE(write_step(dir.path(), 10, 3, 100).ok());
  const std::string records = slurp(dir / "index.json");
  // Files may have 64 KiB, and the write beyond returns an error: only rank 2 has a larger piece.
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{64 << 10, before.rlim_max};
  std::vector<std::string> messages(3);
  run_ranks(3, [&](comm::RankContext& context) {
    auto pieces = test_pieces(context.rank, 3, 200);
    if (context.rank == 2) pieces.push_back({"big", {1 << 18}, {{0}, {1 << 18}}, at::zeros({1 << 18})});
    context.world.barrier();
    if (context.rank == 0) ::setrlimit(RLIMIT_FSIZE, &small);
    context.world.barrier();
    const Status status = save(context.world, dir.path(), test_state(20, 0), pieces, 1);
    context.world.barrier();
    if (context.rank == 0) ::setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_FALSE(status.ok());
    if (status.ok()) return;
    EXPECT_EQ(exit_code(status.error().code), ExitCode::storage);
    messages[static_cast<size_t>(context.rank)] = status.error().message();
  });
  ::signal(SIGXFSZ, old_handler);
  for (const std::string& message : messages) {
    EXPECT_THAT(message, HasSubstr("rank 2: "));
    EXPECT_THAT(message, HasSubstr("rank-00002.safetensors"));
  }
  EXPECT_FALSE(fs::exists(dir / "step-00000020"));
  EXPECT_FALSE(fs::exists(dir / "step-00000020.tmp"));
  EXPECT_EQ(slurp(dir / "index.json"), records);
  EXPECT_TRUE(verify(dir / "step-00000010")->ok());
  // And the next save goes through (row C2: no trace in memory or on disk).
  run_ranks(3, [&](comm::RankContext& context) {
    or_throw(save(context.world, dir.path(), test_state(20, 0), test_pieces(context.rank, 3, 200), 1));
  });
  EXPECT_TRUE(verify(dir / "step-00000020")->ok());
  EXPECT_FALSE(fs::exists(dir / "step-00000010"));
}

TEST(SaveRanks, AFolderThatCannotBeMadeIsAgreed) {
  const TempDir dir;
  spill(dir / "file", "");
  run_ranks(2, [&](comm::RankContext& context) {
    const Status status = save(context.world, dir / "file/x", test_state(1, 0), test_pieces(context.rank, 2, 1), 0);
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.ok() ? "" : status.error().message(), HasSubstr("rank 0: "));
  });
}

TEST(SaveRanks, OneRankDecidesWhatIsNewest) {  // row C5: one rank with a blinded folder
  const TempDir dir, blinded;
  ASSERT_TRUE(write_step(dir.path(), 10, 2, 100).ok());
  ASSERT_TRUE(write_step(blinded.path(), 5, 2, 100).ok());
  run_ranks(3, [&](comm::RankContext& context) {
    std::vector<std::string> notes;
    const auto found = or_throw(find_newest(context.world, context.rank == 1 ? blinded.path() : dir.path(), &notes));
    EXPECT_EQ(found, dir / "step-00000010");
    EXPECT_FALSE(or_throw(find_newest(context.world, dir / "absent", nullptr)).has_value());
  });
}

TEST(SaveRanks, AgreeGivesTheFirstErrorToAll) {
  run_ranks(3, [&](comm::RankContext& context) {
    EXPECT_TRUE(agree(context.world, Status()).ok());
    const Status mine = context.rank == 0 ? Status() : Error{ErrorCode::storage_full, "full", "disk", ""};
    const Status all = agree(context.world, mine);
    EXPECT_FALSE(all.ok());
    EXPECT_EQ(all.error().code, ErrorCode::storage_full);
    EXPECT_EQ(all.error().culprit, "rank 1: disk");
    EXPECT_EQ(all.error().what, "full");
    EXPECT_EQ(broadcast_text(context.world, context.rank == 0 ? "said" : "unsaid"), "said");
    EXPECT_EQ(broadcast_text(context.world, ""), "");
  });
}

}  // namespace
}  // namespace penteract::checkpoint
