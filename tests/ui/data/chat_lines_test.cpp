#include "ui/data/chat_lines.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;

// ASCII characters have width 1, all others 2.
float advance(char32_t character) { return character < 0x80 ? 1 : 2; }

std::vector<std::string> wrap(std::string_view text, float width) {
  ChatLines lines;
  lines.layout(text, width, advance);
  std::vector<std::string> result;
  for (const ChatLines::Line& line : lines.lines())
    result.emplace_back(text.substr(line.begin, line.end - line.begin));
  return result;
}

TEST(ChatLines, BreaksAfterBlanksWhichMayOverhang) {
  EXPECT_THAT(wrap("the fox ran home", 7), ElementsAre("the fox ", "ran ", "home"));
  EXPECT_THAT(wrap("the fox ran home", 8), ElementsAre("the fox ", "ran home"));
  EXPECT_THAT(wrap("the fox     ran", 7), ElementsAre("the fox     ", "ran"));
}

TEST(ChatLines, LineFeedsEndLinesAndEmptyOnesCount) {
  EXPECT_THAT(wrap("a\n\nb", 10), ElementsAre("a", "", "b"));
  EXPECT_THAT(wrap("a\n", 10), ElementsAre("a", ""));
  EXPECT_THAT(wrap("", 10), ElementsAre(""));
}

TEST(ChatLines, LongWordsAreCutButNotTheWordBeforeThem) {
  EXPECT_THAT(wrap("abcdefgh", 3), ElementsAre("abc", "def", "gh"));
  EXPECT_THAT(wrap("ab cdefgh", 4), ElementsAre("ab ", "cdef", "gh"));
  // Narrower than a character: one character per line.
  EXPECT_THAT(wrap("abc", 0.5f), ElementsAre("a", "b", "c"));
}

TEST(ChatLines, CutsBetweenCharactersNeverInsideThem) {
  EXPECT_THAT(wrap("\u00e9\u00e9\u00e9", 4), ElementsAre("\u00e9\u00e9", "\u00e9"));
  // Each invalid byte counts as one character.
  EXPECT_THAT(wrap("\xff\xff\xff", 4), ElementsAre("\xff\xff", "\xff"));
}

TEST(ChatLines, WidthsExcludeTrailingBlanks) {
  ChatLines lines;
  lines.layout("the fox ran  ", 7, advance);
  ASSERT_EQ(lines.lines().size(), 2u);
  EXPECT_EQ(lines.lines()[0].width, 7);
  EXPECT_EQ(lines.lines()[1].width, 3);
  EXPECT_EQ(lines.width(), 7);
}

TEST(ChatLines, AppendingGivesTheSameLinesAsWrappingAllAtOnce) {
  const std::string text =
      "Once upon a time there was a fox,\nand\n\n a kitekitekitekitekite \u00e9t\u00e9 of  paper. ";
  for (float width = 1; width < 30; ++width) {
    ChatLines grown;
    for (size_t size = 0; size <= text.size(); ++size) {
      // A stream never stops inside a character.
      if (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) continue;
      grown.layout(text.substr(0, size), width, advance);
    }
    ChatLines whole;
    whole.layout(text, width, advance);
    ASSERT_EQ(grown.lines().size(), whole.lines().size()) << width;
    for (size_t i = 0; i < whole.lines().size(); ++i) {
      EXPECT_EQ(grown.lines()[i].begin, whole.lines()[i].begin) << width << " " << i;
      EXPECT_EQ(grown.lines()[i].end, whole.lines()[i].end);
      EXPECT_EQ(grown.lines()[i].width, whole.lines()[i].width);
      // No line is wider than the limit, unless a single character is.
      EXPECT_LE(whole.lines()[i].width, std::max(width, 2.0f));
    }
  }
}

TEST(ChatLines, AChangedWidthWrapsAgain) {
  ChatLines lines;
  lines.layout("the fox ran home", 7, advance);
  EXPECT_EQ(lines.lines().size(), 3u);
  lines.layout("the fox ran home", 70, advance);
  EXPECT_EQ(lines.lines().size(), 1u);
}

}  // namespace
}  // namespace hearth::testing
