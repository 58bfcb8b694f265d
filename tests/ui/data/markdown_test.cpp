#include "ui/data/markdown.h"

#include <string>

#include <gtest/gtest.h>

namespace hearth {
namespace {

// A block as text: styles as letters before each span.
std::string described(const MarkdownBlock& block, std::string_view source) {
  std::string text = block.marker.empty() ? "" : block.marker + " ";
  for (const MarkdownSpan& span : block.spans) {
    std::string letters;
    if (span.style.bold) letters += 'b';
    if (span.style.italic) letters += 'i';
    if (span.style.mono) letters += 'm';
    if (span.style.link) letters += 'l';
    if (span.style.struck) letters += 's';
    if (!letters.empty()) text += "<" + letters + ">";
    text += span.inserted.empty() ? std::string(source.substr(span.begin, span.end - span.begin))
                                  : span.inserted;
    if (!letters.empty()) text += "</>";
  }
  return text;
}

class MarkdownTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_markdown()) GTEST_SKIP() << "built without md4c";
  }
};

TEST_F(MarkdownTest, StylesKeepTheirPlaceInTheSource) {
  const std::string text = "A **bold** and *slanted* `code`, ~~old~~ [link](http://x).";
  const auto blocks = parse_markdown(text);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(described(blocks[0], text),
            "A <b>bold</> and <i>slanted</> <m>code</>, <s>old</> <l>link</>.");
  EXPECT_EQ(blocks[0].spans[1].begin, 4u);
  EXPECT_EQ(blocks[0].spans[1].end, 8u);
}

TEST_F(MarkdownTest, HeadingsParagraphsAndRules) {
  const std::string text = "# Title\n\nOne line\nand another.\n\n---\n";
  const auto blocks = parse_markdown(text);
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0].spans[0].style.heading, 1);
  // A single line feed is kept, as people expect in a chat.
  EXPECT_EQ(described(blocks[1], text), "One line\nand another.");
  EXPECT_EQ(blocks[2].kind, MarkdownBlock::Kind::kRule);
}

TEST_F(MarkdownTest, ListsAreIndentedAndNumbered) {
  const std::string text = "Before\n\n- one\n- two\n  - inner\n\n3. three\n4. four\n";
  const auto blocks = parse_markdown(text);
  ASSERT_EQ(blocks.size(), 6u);
  EXPECT_EQ(described(blocks[1], text), "\u2022 one");
  EXPECT_EQ(described(blocks[3], text), "\u2022 inner");
  EXPECT_EQ(blocks[3].indent, 2);
  EXPECT_FALSE(blocks[1].tight);
  EXPECT_TRUE(blocks[2].tight);
  EXPECT_EQ(described(blocks[4], text), "3. three");
  EXPECT_EQ(described(blocks[5], text), "4. four");
}

TEST_F(MarkdownTest, CodeBlocksKeepTheirText) {
  const std::string text = "```python\nif x:\n    print(\"*a*\")\n```\nafter";
  const auto blocks = parse_markdown(text);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].kind, MarkdownBlock::Kind::kCode);
  EXPECT_EQ(blocks[0].language, "python");
  EXPECT_EQ(code_text(blocks[0], text), "if x:\n    print(\"*a*\")");
  EXPECT_EQ(described(blocks[1], text), "after");
}

// As it is while an answer is being generated.
TEST_F(MarkdownTest, AnUnclosedFenceIsCodeAndAnUnclosedStarIsText) {
  const auto code = parse_markdown("```c\nint x;");
  ASSERT_EQ(code.size(), 1u);
  EXPECT_EQ(code[0].kind, MarkdownBlock::Kind::kCode);
  const std::string text = "a **bol";
  const auto blocks = parse_markdown(text);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(described(blocks[0], text), text);
}

TEST_F(MarkdownTest, EntitiesAreDecodedAndMarkupIsText) {
  const std::string text = "a &lt; b <b>c</b>\n\n    four blanks are no code";
  const auto blocks = parse_markdown(text);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(described(blocks[0], text), "a < b <b>c</b>");
  EXPECT_EQ(blocks[1].kind, MarkdownBlock::Kind::kText);
}

TEST(Markdown, PlainTextIsOneSpan) {
  const auto blocks = plain_text("# as *it* is");
  ASSERT_EQ(blocks.size(), 1u);
  ASSERT_EQ(blocks[0].spans.size(), 1u);
  EXPECT_EQ(blocks[0].spans[0].end, 12u);
}

}  // namespace
}  // namespace hearth
