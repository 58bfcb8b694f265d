#include "runtime/host/printable.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/log.h"

namespace hearth {
namespace {

TEST(Printable, TextOfAllLanguagesStaysAsItIs) {
  for (const char* text : {"", "a model.gguf", "r\u00e9sum\u00e9", "\u6a21\u578b", "\U0001f525",
                           "C:\\models", "~ 100 %"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapeSequencesBecomeVisible) {
  EXPECT_EQ(printable("\x1b[31mred\x1b]0;title\a"), "\\x1b[31mred\\x1b]0;title\\x07");
  EXPECT_EQ(printable("a\nb\rc\td\x7f"), "a\\nb\\rc\\td\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  // The same control characters in one byte of Latin-1 and in UTF-8.
  EXPECT_EQ(printable("\x9b"), "\\x9b");
  EXPECT_EQ(printable("\u009b31m"), "\\u009b31m");
}

TEST(Printable, TextThatTurnsAroundOrEndsALineBecomesVisible) {
  EXPECT_EQ(printable("exe.\u202egpj"), "exe.\\u202egpj");
  EXPECT_EQ(printable("a\u2028b\u2066c\u200f"), "a\\u2028b\\u2066c\\u200f");
}

TEST(Printable, BytesThatAreNotUtf8BecomeVisible) {
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b") << "longer than necessary";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(printable("\xe6\xa8x"), "\\xe6\\xa8x");
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
}

TEST(Printable, LinesStayLinesWhereTheyAreWanted) {
  EXPECT_EQ(printable_lines("one\ntwo\x1b\n"), "one\ntwo\\x1b\n");
  EXPECT_EQ(printable_lines(""), "");
}

TEST(Printable, LogLinesAreEscaped) {
  std::vector<std::string> lines;
  const ScopedLogSink sink([&](std::string_view line) { lines.emplace_back(line); });
  log_line("\x1b[2Jevil.gguf: no such file\nhearth: all is well");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "\\x1b[2Jevil.gguf: no such file\\nhearth: all is well");
}

}  // namespace
}  // namespace hearth
