#include "ui/data/rich_lines.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;

// ASCII characters have width 1, all others 2; bold ones are half as wide again. A line feed is
// 0.5.
RichMetrics rich_metrics() {
  return {.advance =
              [](char32_t character, const TextStyle& style) {
                if (character == '\n') return 0.5f;
                return (character < 0x80 ? 1.0f : 2.0f) * (style.bold ? 1.5f : 1.0f);
              },
          .line_height = [](const TextStyle& style) { return style.heading > 0 ? 20.0f : 10.0f; },
          .indent = 4,
          .gap = 3,
          .padding = 1};
}

RichLines rich_layout(std::vector<MarkdownBlock> blocks, std::string_view text, float width) {
  RichLines lines;
  lines.layout(std::move(blocks), text, width, rich_metrics());
  return lines;
}

// The lines of plain text, without line feeds.
std::vector<std::string> rich_wrap(std::string_view text, float width) {
  const RichLines lines = rich_layout(plain_text(text), text, width);
  std::vector<std::string> result;
  for (const RichLine& line : lines.lines()) {
    result.emplace_back();
    for (const RichPiece& piece : line.pieces) result.back() += piece.text(text);
    std::erase(result.back(), '\n');
  }
  return result;
}

TEST(RichLines, BreaksAfterBlanksWhichMayOverhang) {
  EXPECT_THAT(rich_wrap("the fox ran home", 7), ElementsAre("the fox ", "ran ", "home"));
  EXPECT_THAT(rich_wrap("the fox ran home", 8), ElementsAre("the fox ", "ran home"));
  EXPECT_THAT(rich_wrap("the fox     ran", 7), ElementsAre("the fox     ", "ran"));
}

TEST(RichLines, LineFeedsEndLinesAndEmptyOnesCount) {
  EXPECT_THAT(rich_wrap("a\n\nb", 10), ElementsAre("a", "", "b"));
  EXPECT_THAT(rich_wrap("a\n", 10), ElementsAre("a", ""));
  EXPECT_THAT(rich_wrap("", 10), ElementsAre(""));
}

TEST(RichLines, LongWordsAreCutButNotTheWordBeforeThem) {
  EXPECT_THAT(rich_wrap("abcdefgh", 3), ElementsAre("abc", "def", "gh"));
  EXPECT_THAT(rich_wrap("ab cdefgh", 4), ElementsAre("ab ", "cdef", "gh"));
  // Narrower than a character: one character per line.
  EXPECT_THAT(rich_wrap("abc", 0.5f), ElementsAre("a", "b", "c"));
}

TEST(RichLines, CutsBetweenCharactersNeverInsideThem) {
  EXPECT_THAT(rich_wrap("\u00e9\u00e9\u00e9", 4), ElementsAre("\u00e9\u00e9", "\u00e9"));
  // Each invalid byte counts as one character.
  EXPECT_THAT(rich_wrap("\xff\xff\xff", 4), ElementsAre("\xff\xff", "\xff"));
}

TEST(RichLines, ChineseNeedsNoBlanks) {
  EXPECT_THAT(rich_wrap("a \u4f60\u597d\u4f60\u597d", 6),
              ElementsAre("a \u4f60\u597d", "\u4f60\u597d"));
}

TEST(RichLines, WidthsExcludeTrailingBlanks) {
  const std::string text = "the fox ran  ";
  EXPECT_EQ(rich_layout(plain_text(text), text, 7).width(), 7);
}

TEST(RichLines, TheByteUnderAPositionIsTheOneDrawnThere) {
  const std::string text = "ab\u00e9d ef";
  const RichLines lines = rich_layout(plain_text(text), text, 6);
  const RichMetrics metrics = rich_metrics();
  const auto byte = [&](float x, float y) { return lines.byte_at(x, y, text, metrics); };
  EXPECT_EQ(byte(0.5f, 5), 0u);
  EXPECT_EQ(byte(2.5f, 5), 2u);
  EXPECT_EQ(byte(3.9f, 5), 2u);  // the wide character
  EXPECT_EQ(byte(4.1f, 5), 4u);
  EXPECT_EQ(byte(0.5f, 15), 6u);
  EXPECT_EQ(byte(9, 5), std::nullopt);
  EXPECT_EQ(byte(1, 25), std::nullopt);
  EXPECT_EQ(lines.byte_at(9, 15, text, metrics, true), text.size());
  EXPECT_EQ(lines.byte_at(-3, 15, text, metrics, true), 6u);
}

// A style begins a new piece at a whole pixel, which is where ImGui draws it.
TEST(RichLines, PiecesBeginAtWholePixels) {
  std::vector<MarkdownBlock> blocks(1);
  const std::string text = "abcdef";
  blocks[0].spans = {{.begin = 0, .end = 1, .style = {.bold = true}}, {.begin = 1, .end = 6}};
  const RichLines lines = rich_layout(blocks, text, 100);
  ASSERT_EQ(lines.lines().size(), 1u);
  ASSERT_EQ(lines.lines()[0].pieces.size(), 2u);
  EXPECT_EQ(lines.lines()[0].pieces[1].x, 1);
  EXPECT_EQ(lines.byte_at(1.2f, 5, text, rich_metrics()), 0u) << "what is drawn first stays on top";
  EXPECT_EQ(lines.byte_at(2.5f, 5, text, rich_metrics()), 2u);
}

TEST(RichLines, ARangeOfBytesCoversABoxInEachOfItsLines) {
  const std::string text = "the fox ran";
  const RichLines lines = rich_layout(plain_text(text), text, 7);
  std::vector<RichBox> boxes;
  lines.boxes(3, 10, text, rich_metrics(), [&](const RichBox& box) { boxes.push_back(box); });
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_EQ(boxes[0].left, 3);
  EXPECT_EQ(boxes[0].right, 8);
  EXPECT_EQ(boxes[0].top, 0);
  EXPECT_FALSE(boxes[0].blank);
  EXPECT_EQ(boxes[1].left, 0);
  EXPECT_EQ(boxes[1].right, 2);
  EXPECT_EQ(boxes[1].top, 10);
  boxes.clear();
  lines.boxes(7, 8, text, rich_metrics(), [&](const RichBox& box) { boxes.push_back(box); });
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_TRUE(boxes[0].blank);
}

TEST(RichLines, GrowingTextIsWrappedAgainOnlyWhenItChanges) {
  RichLines lines;
  int measured = 0;
  RichMetrics metrics = rich_metrics();
  metrics.advance = [&](char32_t, const TextStyle&) { return ++measured, 1.0f; };
  lines.update("abc", false, 10, 1, metrics);
  EXPECT_EQ(measured, 3);
  lines.update("abc", false, 10, 1, metrics);
  EXPECT_EQ(measured, 3);
  lines.update("abcd", false, 10, 1, metrics);
  EXPECT_EQ(measured, 7);
  lines.update("abcd", false, 10, 2, metrics);
  EXPECT_EQ(measured, 11);
}

TEST(RichLines, CodeBeginsBelowItsHeading) {
  if (!has_markdown()) GTEST_SKIP() << "built without md4c";
  const std::string text = "```c\nx\n```\n";
  RichMetrics metrics = rich_metrics();
  const auto first_line = [&] {
    RichLines lines;
    lines.layout(parse_markdown(text), text, 40, metrics);
    EXPECT_EQ(lines.places()[0].y, 0);
    return lines.lines()[0].y;
  };
  const float without = first_line();
  metrics.code_heading = 9;
  EXPECT_EQ(first_line(), without + 9);
}

}  // namespace
}  // namespace hearth::testing
