#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>

#include "penteract/data/nfc.h"
#include "penteract/data/utf8.h"

namespace penteract::data {
namespace {

std::string reference_nfc(const std::string& text) {
  utf8proc_uint8_t* out = nullptr;
  const auto n =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &out, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  EXPECT_GE(n, 0);
  std::string result(reinterpret_cast<char*>(out), static_cast<size_t>(n));
  std::free(out);
  return result;
}

std::string nfc(const std::string& text) {
  std::string out;
  return normalize_nfc(text, out) ? out : text;
}

std::string utf8(char32_t c) {
  std::string s;
  append_utf8(c, s);
  return s;
}

TEST(Nfc, EveryCharacterIsAsTheReferenceSays) {
  std::string all, got;
  for (char32_t c = 1; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    append_utf8(c, all);
    all += ' ';
  }
  EXPECT_EQ(nfc(all), reference_nfc(all));
}

TEST(Nfc, PlainCharactersNeedNoTables) {
  for (char32_t c = 1; c <= 0x10FFFF; ++c) {
    if ((c >= 0xD800 && c < 0xE000) || !plainly_nfc(c)) continue;
    // Unchanged alone, behind what it might compose with, and before a mark of the lowest class.
    ASSERT_EQ(utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class, 0) << std::hex << uint32_t{c};
    ASSERT_EQ(reference_nfc(utf8(c)), utf8(c)) << std::hex << uint32_t{c};
    for (const char32_t before : {U'e', U'\u1100', U'\uAC00', U'\u304B', U'\u09C7', U'\u0DD9'}) {
      const std::string pair = utf8(before) + utf8(c);
      ASSERT_EQ(reference_nfc(pair), pair) << std::hex << uint32_t{c};
    }
  }
}

TEST(Nfc, MarksComposeAcrossRuns) {
  EXPECT_EQ(nfc("cafe\u0301 x"), "caf\u00e9 x");
  EXPECT_EQ(nfc("e\u0301e\u0301"), "\u00e9\u00e9");
  EXPECT_EQ(nfc("\u1100\u1161\u11a8"), "\uac01");
  EXPECT_EQ(nfc("a\u0301\u0316"), reference_nfc("a\u0301\u0316"));
  EXPECT_EQ(nfc("q\u0307\u0323 \u212b"), "q\u0323\u0307 \u00c5");
  // Assigned after Unicode 9: neither sorted nor composed.
  EXPECT_EQ(nfc("a\u0345\u07fd"), "a\u0345\u07fd");
  EXPECT_EQ(nfc("\U00011935\U00011930"), "\U00011935\U00011930");
  EXPECT_EQ(nfc("e\u07fd\u0301e\u0301"), "e\u07fd\u0301\u00e9");
  std::string out = "kept";
  EXPECT_FALSE(normalize_nfc("plain ASCII, é and 的", out));
}

TEST(Nfc, RunsOfMarksAreNotQuadratic) {
  std::string text = "a";
  for (int i = 0; i < 100'000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0316";
  const std::string got = nfc(text);
  EXPECT_EQ(got.substr(0, 4), "\u00e1\u0316");
  EXPECT_EQ(got.size(), text.size() - 1);
}

TEST(Utf8, InvalidPartsBecomeOneReplacementEach) {
  EXPECT_EQ(repair_utf8("a\xff"
                        "b"),
            "a\uFFFDb");
  EXPECT_EQ(repair_utf8("\xf0\x9f\x91"), "\uFFFD");              // cut: one
  EXPECT_EQ(repair_utf8("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate: one a byte
  EXPECT_EQ(repair_utf8("\xc0\xaf\xe0\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(repair_utf8("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(repair_utf8("\xe2\x28\xa1"), "\uFFFD(\uFFFD");
  EXPECT_EQ(repair_utf8("12345678é的👍"), "12345678é的👍");
  EXPECT_EQ(valid_utf8_prefix("12345678\xc3"), 8u);
  for (char32_t c : {0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xD7FFu, 0xE000u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    const std::string s = utf8(c);
    size_t i = 0;
    EXPECT_EQ(valid_utf8_prefix(s), s.size());
    EXPECT_EQ(next_code_point(s, i), c);
    EXPECT_EQ(i, s.size());
  }
}

}  // namespace
}  // namespace penteract::data
