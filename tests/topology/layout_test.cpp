#include "penteract/topology/layout.h"

#include <gtest/gtest.h>

namespace penteract::topology {
namespace {

Result<Layout> make(const std::string& text, int ranks = 0) {
  PENT_ASSIGN(const auto request, parse_layout(text));
  return complete_layout(request, ranks);
}

TEST(ParseLayout, ReadsEveryKey) {
  const auto l = make("tp=2,pp=2,cp=2,dp=2,ep=4,etp=1,sp=on,split=3|1");
  ASSERT_TRUE(l.ok());
  EXPECT_EQ(l->num_ranks(), 16);
  EXPECT_EQ(l->edp, 2);
  EXPECT_TRUE(l->sp);
  EXPECT_EQ(l->split, (std::vector<int>{3, 1}));
}

TEST(ParseLayout, UnnamedAxesFollow) {
  const auto l = make("tp=2", 8);
  ASSERT_TRUE(l.ok());
  EXPECT_EQ(l->dp, 4);
  EXPECT_EQ(l->etp, 1);  // never tp's value (userlog F5)
  EXPECT_EQ(l->edp, 8);
  EXPECT_TRUE(l->sp);
  EXPECT_FALSE(make("dp=2")->sp);
}

TEST(ParseLayout, BadTextNamesThePiece) {
  for (const char* text : {"tp",
                           "tp=",
                           "tp=0",
                           "tp=-1",
                           "tp=2x",
                           "tq=2",
                           "tp=2,tp=2",
                           "sp=maybe",
                           "split=",
                           "tp=99999999999",
                           "tp=10000000000000000000",
                           "",
                           " ",
                           "schedule=",
                           "tp=1048577",
                           "edp=0",
                           ",tp=2",
                           "tp=2,",
                           "tp==2",
                           "tp=1.5",
                           "tp=2 2",
                           "TP=2",
                           "split=|",
                           "split=2|",
                           ",",
                           "tp=+2",
                           "tp=0x2",
                           "tp=1e1",
                           "tp=4294967298",
                           "tp=2,,pp=2",
                           "world=4",
                           "=2",
                           "tp=2,sp=",
                           "split=1|",
                           "split=3|-1",
                           "cp=",
                           "etp=0"}) {
    const auto layout = make(text);  // a split is read when the layout is completed
    ASSERT_FALSE(layout.ok()) << text;
    EXPECT_EQ(layout.error().code, ErrorCode::layout_syntax) << text;
    EXPECT_FALSE(layout.error().remedy.empty()) << text;
  }
  EXPECT_NE(parse_layout("etpp=2").error().remedy.find("etp"), std::string::npos);
}

TEST(CompleteLayout, WhatDoesNotMultiplyShowsTheNumbers) {
  const auto wrong = make("tp=3", 16);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::layout_ranks);
  EXPECT_NE(wrong.error().what.find("16 ranks"), std::string::npos);
  EXPECT_FALSE(make("tp=2,dp=3", 16).ok());
  const auto experts = make("dp=4,ep=3");
  ASSERT_FALSE(experts.ok());
  EXPECT_NE(experts.error().remedy.find("1, 2, 4"), std::string::npos);
  // Products past every integer type are refused, not computed.
  for (const char* text : {"tp=1048576,pp=1048576,cp=1048576", "tp=65536,cp=65536,pp=65536,dp=65536",
                           "ep=65536,etp=65536", "pp=1048576,vpp=1048576,split=1|1", "dp=1048576,tp=1048576"}) {
    EXPECT_EQ(make(text).error().code, ErrorCode::layout_ranks) << text;
  }
  EXPECT_FALSE(make("sp=on").ok());
}

TEST(CompleteLayout, TheRemedyNamesRanksThatFitAndEachOnce) {
  EXPECT_EQ(make("tp=8", 4).error().remedy, "use 8 ranks, or smaller axes");
  EXPECT_EQ(make("tp=4,pp=2", 12).error().remedy, "with tp=4 cp=1 pp=2, use 8 ranks with dp=1 or 16 ranks with dp=2");
  EXPECT_EQ(make("tp=2,dp=3", 16).error().remedy, "with tp=2 cp=1 pp=1, 16 ranks need dp=8");
  EXPECT_NE(make("tp=2,dp=1048576").error().what.find("at most 1048576 ranks"), std::string::npos);
}

TEST(CompleteLayout, EdpMayBeWrittenWhereItFollows) {
  EXPECT_TRUE(make("tp=2,dp=2,ep=2,edp=2").ok());
  EXPECT_TRUE(make("tp=2,edp=8", 8).ok());
  for (const char* text : {"edp=3,tp=2,dp=2", "edp=2,tp=2", "edp=7"}) {
    EXPECT_EQ(make(text, 8).error().code, ErrorCode::layout_ranks) << text;
  }
}

TEST(CompleteLayout, SplitNamesEveryStage) {
  EXPECT_FALSE(make("pp=2,split=1|2|3").ok());
  EXPECT_EQ(make("pp=2,split=cost").error().code, ErrorCode::recipe_unsupported);
}

TEST(LayersPerStage, UnevenSplitsLoseNoLayer) {
  // Megatron-LM #2718: layers dropped in silence by an uneven split.
  EXPECT_EQ(*layers_per_stage(*make("pp=2"), 27), (std::vector<int>{14, 13}));
  EXPECT_EQ(*layers_per_stage(*make("pp=2,split=11|16"), 27), (std::vector<int>{11, 16}));
  EXPECT_FALSE(layers_per_stage(*make("pp=2,split=11|13"), 48).ok());
  EXPECT_EQ(*layers_per_stage(*make("tp=1"), 27), (std::vector<int>{27}));
}

TEST(LayersPerStage, AStageMayHaveNone) {
  EXPECT_EQ(*layers_per_stage(*make("pp=4"), 3), (std::vector<int>{1, 1, 1, 0}));
  EXPECT_EQ(*layers_per_stage(*make("pp=3,split=2|0|3"), 5), (std::vector<int>{2, 0, 3}));
  EXPECT_EQ(make("pp=2,split=-1|6").error().code, ErrorCode::layout_syntax);
}

TEST(ToString, ReadsBack) {
  for (const char* text : {"tp=2,pp=2,cp=2,dp=2,ep=4", "tp=4,sp=off,dp=2", "pp=3,split=2|1|1", "dp=4,ep=2,etp=2"}) {
    const auto l = make(text);
    ASSERT_TRUE(l.ok()) << text;
    EXPECT_EQ(*make(to_string(*l)), *l) << to_string(*l);
  }
}

}  // namespace
}  // namespace penteract::topology
