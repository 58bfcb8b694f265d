#include "ui/data/chat_lines.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;

// Every character is 1 wide, but for those beyond ASCII.
float advance(char32_t character) { return character < 0x80 ? 1 : 2; }

std::vector<std::string> broken(std::string_view text, float width) {
  ChatLines lines;
  lines.layout(text, width, advance);
  std::vector<std::string> result;
  for (const ChatLines::Line& line : lines.lines())
    result.emplace_back(text.substr(line.begin, line.end - line.begin));
  return result;
}

TEST(ChatLines, BreaksAfterBlanksWhichHangOver) {
  EXPECT_THAT(broken("the fox ran home", 7), ElementsAre("the fox ", "ran ", "home"));
  EXPECT_THAT(broken("the fox ran home", 8), ElementsAre("the fox ", "ran home"));
  EXPECT_THAT(broken("the fox     ran", 7), ElementsAre("the fox     ", "ran"));
}

TEST(ChatLines, LineFeedsEndLinesAndEmptyOnesCount) {
  EXPECT_THAT(broken("a\n\nb", 10), ElementsAre("a", "", "b"));
  EXPECT_THAT(broken("a\n", 10), ElementsAre("a", ""));
  EXPECT_THAT(broken("", 10), ElementsAre(""));
}

TEST(ChatLines, LongWordsAreCutAndTheWordBeforeThemIsNot) {
  EXPECT_THAT(broken("abcdefgh", 3), ElementsAre("abc", "def", "gh"));
  EXPECT_THAT(broken("ab cdefgh", 4), ElementsAre("ab ", "cdef", "gh"));
  // Narrower than a character: one a line, and it ends.
  EXPECT_THAT(broken("abc", 0.5f), ElementsAre("a", "b", "c"));
}

TEST(ChatLines, CutsBetweenCharactersNeverInThem) {
  EXPECT_THAT(broken("\u00e9\u00e9\u00e9", 4), ElementsAre("\u00e9\u00e9", "\u00e9"));
  // Bytes that are no character are one each.
  EXPECT_THAT(broken("\xff\xff\xff", 4), ElementsAre("\xff\xff", "\xff"));
}

TEST(ChatLines, WidthsAreOfInkAlone) {
  ChatLines lines;
  lines.layout("the fox ran  ", 7, advance);
  ASSERT_EQ(lines.lines().size(), 2u);
  EXPECT_EQ(lines.lines()[0].width, 7);
  EXPECT_EQ(lines.lines()[1].width, 3);
  EXPECT_EQ(lines.width(), 7);
}

TEST(ChatLines, MoreTextGivesTheSameLinesAsAllAtOnce) {
  const std::string text =
      "Once upon a time there was a fox,\nand\n\n a kitekitekitekitekite \u00e9t\u00e9 of  paper. ";
  for (float width = 1; width < 30; ++width) {
    ChatLines grown;
    for (size_t size = 0; size <= text.size(); ++size) {
      // A stream never ends within a character.
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
      // Nothing wider than asked for, unless one character is.
      EXPECT_LE(whole.lines()[i].width, std::max(width, 2.0f));
    }
  }
}

TEST(ChatLines, AnotherWidthBreaksAnew) {
  ChatLines lines;
  lines.layout("the fox ran home", 7, advance);
  EXPECT_EQ(lines.lines().size(), 3u);
  lines.layout("the fox ran home", 70, advance);
  EXPECT_EQ(lines.lines().size(), 1u);
}

}  // namespace
}  // namespace hearth::testing
