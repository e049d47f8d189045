#include "penteract/base/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace penteract {
namespace {

using testing::HasSubstr;

TEST(Toml, EveryKindWithItsLine) {
  auto doc = parse_toml("[a]\nb = true\ni = -3\nf = 1e-3\ns = 'x'\nl = [1, \"two\"]\nt = { k = 1 }\n", "r.toml");
  ASSERT_TRUE(doc.ok()) << doc.error().message();
  const auto& values = doc->section("a").values();
  EXPECT_EQ(values.at("b").kind, ConfigValue::Kind::boolean);
  EXPECT_EQ(values.at("i").integer, -3);
  EXPECT_EQ(values.at("f").floating, 1e-3);
  EXPECT_EQ(values.at("s").string, "x");
  EXPECT_EQ(values.at("l").items.at(1).string, "two");
  EXPECT_EQ(values.at("t").fields.at("k").integer, 1);
  EXPECT_EQ(values.at("s").where, "r.toml:5");
}

TEST(Toml, QuoteReadsBack) {
  for (const std::string text : {"", "a b", "\"\\\n\t", "\x01\x7f", "Ünïcode"}) {
    auto doc = parse_toml("[a]\nk = " + toml_quote(text), "r");
    ASSERT_TRUE(doc.ok()) << doc.error().message();
    EXPECT_EQ(doc->section("a").values().at("k").string, text);
  }
}

TEST(Toml, WhatARecipeCannotHold) {
  const auto refused = [](const std::string& text) {
    const auto doc = parse_toml(text, "r.toml");
    EXPECT_FALSE(doc.ok()) << text;
    return doc.ok() ? Error{} : doc.error();
  };
  for (const char* text : {"[a]\nk = 1e400", "[a]\nk = -1e999"}) {
    EXPECT_THAT(refused(text).message(), HasSubstr("is no number between")) << text;
    EXPECT_EQ(refused(text).culprit, "r.toml:2");
  }
  for (const char* text : {"[a]\nk = \"a\\u0000b\"", "[a]\nk = [{ p = \"\\u0000\" }]"}) {
    EXPECT_THAT(refused(text).what, HasSubstr("NUL")) << text;
    EXPECT_EQ(exit_code(refused(text).code), ExitCode::usage);
  }
  EXPECT_EQ(refused("[a]\nk = 1979-05-27").code, ErrorCode::recipe_type);
  EXPECT_THAT(refused("[a]\nk = [[[[[[[[[[1]]]]]]]]]]").what, HasSubstr("nested"));
  EXPECT_EQ(refused("[a]\nk = 1\nk = 2").culprit, "r.toml:3");
  EXPECT_EQ(refused("k = 1").code, ErrorCode::recipe_key);
}

TEST(TomlSets, WinAndTakeABareWordAsText) {
  auto doc = parse_toml("[a]\nk = 1\n", "r", {"a.k=2", "a.s=2024-run/x", "a.n=", "b.l=[\"x\", \"y\"]", "a.q=it's"});
  ASSERT_TRUE(doc.ok()) << doc.error().message();
  EXPECT_EQ(doc->section("a").values().at("k").integer, 2);
  EXPECT_EQ(doc->section("a").values().at("s").string, "2024-run/x");
  EXPECT_EQ(doc->section("a").values().at("n").string, "");
  EXPECT_EQ(doc->section("a").values().at("q").string, "it's");
  EXPECT_EQ(doc->section("b").values().at("l").items.size(), 2u);
  EXPECT_EQ(doc->section("a").values().at("k").where, "--set a.k");
}

TEST(TomlSets, OneLineOneKeyOneValue) {
  for (const char* set : {"a.k=1\nj = 2", "a.k=1\r\n[b]", "a.k=word\nmore", "k=1", "a.=1", ".k=1", "a.k", "a.k=[1,",
                          "a.k=1e400", "a.k={ x", "a.k=\"open", "a.k=1.2.3"}) {
    const auto doc = parse_toml("", "r", {set});
    ASSERT_FALSE(doc.ok()) << set;
    EXPECT_EQ(doc.error().code, ErrorCode::recipe_syntax) << set;
    EXPECT_TRUE(doc.error().culprit.starts_with("--set ")) << doc.error().culprit;
    EXPECT_FALSE(doc.error().remedy.empty()) << set;
    EXPECT_EQ(doc.error().culprit.find('\n'), std::string::npos);
  }
}

TEST(Toml, ALargeFileIsNoRecipe) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("pent-toml-" + std::to_string(::getpid()))).string();
  std::ofstream(path) << "[a]\n";
  EXPECT_TRUE(read_toml(path).ok());
  std::filesystem::resize_file(path, (16 << 20) + 1);
  const auto doc = read_toml(path);
  std::filesystem::remove(path);
  ASSERT_FALSE(doc.ok());
  EXPECT_EQ(exit_code(doc.error().code), ExitCode::usage);
  EXPECT_THAT(doc.error().what, HasSubstr("at most 16.0 MiB"));
}

}  // namespace
}  // namespace penteract
