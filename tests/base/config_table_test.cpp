#include "penteract/base/config_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penteract/base/toml.h"

namespace penteract {
namespace {

using testing::HasSubstr;

ConfigDocument document(const std::string& text) { return or_throw(parse_toml(text, "r.toml")); }

TEST(ConfigTable, AbsentKeysLeaveTheDefault) {
  ConfigTable table;
  int number = 7;
  std::string text = "default";
  EXPECT_TRUE(table.get("k", number, 0, 9).ok());
  EXPECT_TRUE(table.get("s", text).ok());
  EXPECT_EQ(number, 7);
  EXPECT_EQ(text, "default");
}

TEST(ConfigTable, WrongTypesSayWhatIsThereAndWhatIsExpected) {
  auto doc = document("[a]\nn = 1\ns = 'x'\nf = 0.5\nl = [1, 'x']\nt = { k = 1 }\n");
  ConfigTable& a = doc.section("a");
  bool flag = false;
  int64_t whole = 0;
  double real = 0;
  std::string text;
  std::vector<double> reals;
  std::vector<std::string> texts;
  for (const Status& status : {a.get("n", flag), a.get("n", text), a.get("f", whole, 0), a.get("s", real, 0, 1),
                               a.get("l", reals), a.get("l", texts), a.get("n", reals), a.get("t", text)}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::recipe_type);
    EXPECT_THAT(status.error().culprit, HasSubstr("r.toml:"));
    EXPECT_THAT(status.error().what, HasSubstr("expected"));
    EXPECT_FALSE(status.error().remedy.empty());
  }
  EXPECT_TRUE(a.get("n", real, 0, 1).ok());  // a whole number is a number
  EXPECT_EQ(real, 1);
}

TEST(ConfigTable, RangesSayTheirBounds) {
  auto doc = document("[a]\nk = 5\nbig = 9000000000000000000\nf = nan\n");
  ConfigTable& a = doc.section("a");
  int64_t whole = 0;
  int small = 0;
  double real = 0;
  EXPECT_EQ(a.get("k", small, 1, 4).error().what, "is 5, expected 1 to 4");
  EXPECT_EQ(a.get("k", whole, 6).error().what, "is 5, expected at least 6");
  // Above a bound that only keeps numbers representable: "at least" would be no help.
  EXPECT_EQ(a.get("big", whole, 1, int64_t{1} << 40).error().what,
            "is 9000000000000000000, expected 1 to 1099511627776");
  EXPECT_EQ(a.get("f", real, 0, 1).error().code, ErrorCode::recipe_range);
  EXPECT_TRUE(a.get("k", whole, 5, 5).ok());
}

TEST(ConfigTable, RequireNamesSectionAndKey) {
  ConfigTable table("train", {});
  const Status missing = table.require("steps");
  EXPECT_EQ(missing.error().code, ErrorCode::recipe_missing);
  EXPECT_EQ(missing.error().culprit, "train.steps");
  EXPECT_EQ(missing.error().remedy, "add steps to [train]");
}

TEST(ConfigDocument, KeysThatNobodyAskedForAreErrorsWithTheNearest) {
  const auto finish = [](const std::string& text) {
    auto doc = document(text);
    for (const char* key : {"steps", "limit"}) doc.section("train").find(key);
    doc.section("optimizer").find("weight_decay");
    return doc.finish();
  };
  EXPECT_TRUE(finish("[train]\nsteps = 1\n").ok());
  EXPECT_EQ(finish("[train]\nstepz = 1\n").error().remedy, "did you mean \"steps\"?");
  EXPECT_EQ(finish("[train]\nweight_decay = 1\n").error().remedy, "move it to [optimizer]");
  EXPECT_EQ(finish("[trian]\nsteps = 1\n").error().remedy, "did you mean [train]?");
  EXPECT_EQ(finish("[other]\nxyz = 1\n").error().remedy, "remove it");
  EXPECT_EQ(finish("[train]\nstepz = 1\n").error().culprit, "r.toml:2: train.stepz");
}

}  // namespace
}  // namespace penteract
