#include "penteract/base/text.h"

#include <gtest/gtest.h>

namespace penteract {
namespace {

TEST(NearestWord, FindsTyposAndRefusesStrangers) {
  EXPECT_EQ(nearest_word("seq_lenght", {"seq_length", "steps"}), "seq_length");
  EXPECT_EQ(nearest_word("warmup", {"warmup_steps", "lr"}), "");
  EXPECT_EQ(nearest_word("zzzzzz", {"seq_length", "steps"}), "");
}

TEST(Printable, NothingSteersATerminal) {
  EXPECT_EQ(printable("two\nlines\tand Ünïcode …"), "two\nlines\tand Ünïcode …");
  EXPECT_EQ(printable("\x1b[2J\x07\r\x7f"), "\\x1b[2J\\x07\\x0d\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");  // C1: an escape in one character
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(QuoteLine, OneShortLine) {
  EXPECT_EQ(quote_line("a\nb\tc"), "\"a\\nb\\tc\"");
  EXPECT_EQ(quote_line("abcdef", 3), "\"abc…\"");
  EXPECT_EQ(quote_line("aéé", 2), "\"a…\"");  // no half of a character
  EXPECT_EQ(quote_line("\x1b"), "\"\\x1b\"");
}

TEST(FormatBytes, ThreeFigures) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(uint64_t{13} << 30), "13.0 GiB");
}

TEST(FormatSeconds, Units) {
  EXPECT_EQ(format_seconds(9.4), "9 s");
  EXPECT_EQ(format_seconds(100), "1 min 40 s");
  EXPECT_EQ(format_seconds(7500), "2 h 05 min");
}

TEST(FormatTable, AlignsByCharactersNotBytes) {
  EXPECT_EQ(format_table({{"a", "b"}, {"tp·cp", "1"}}), "a      b\n-----  -\ntp·cp  1\n");
}

TEST(SplitText, KeepsEmptyPieces) {
  EXPECT_EQ(split_text("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split_text("", ','), (std::vector<std::string>{""}));
}

}  // namespace
}  // namespace penteract
