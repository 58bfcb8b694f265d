// A small terminal stands in for a real one: what counts is what is on its screen.
#include "tools/chat/word_wrapper.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/text/utf8.h"
#include "tools/chat/character_width.h"

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Cells hold a character each; the second cell of a wide one is empty. Knows the two escape codes
// that are used, wraps at its edge and, as real ones do, only when the next character comes.
class Screen {
 public:
  explicit Screen(uint32_t columns) : columns_(columns) {}

  void write(std::string_view text) {
    while (!text.empty()) {
      if (text.starts_with("\033[K")) {
        rows_.back().resize(std::min<size_t>(rows_.back().size(), column_));
        text.remove_prefix(3);
      } else if (text.starts_with("\033[")) {
        const size_t end = text.find('C');
        ASSERT_NE(end, std::string_view::npos) << "an unknown escape code";
        const auto right = static_cast<uint32_t>(std::stoul(std::string(text.substr(2, end - 2))));
        ASSERT_GT(right, 0u) << "which is 1 to a terminal";
        column_ = std::min(column_ + right, columns_ - 1);
        text.remove_prefix(end + 1);
      } else if (text.front() == '\r') {
        column_ = 0;
        text.remove_prefix(1);
      } else {
        const size_t bytes = utf8_step(text).bytes;
        put(std::string(text.substr(0, bytes)));
        text.remove_prefix(bytes);
      }
    }
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const auto& row : rows_) {
      std::string line;
      for (const std::string& cell : row) line += cell;
      line.erase(line.find_last_not_of(' ') + 1);
      lines.push_back(line);
    }
    return lines;
  }
  bool wrapped() const { return wrapped_; }

 private:
  void put(const std::string& character) {
    if (character == "\n") {
      rows_.emplace_back();
      column_ = 0;
      return;
    }
    if (character == "\t") {
      do put(" ");
      while (column_ % 8 != 0);
      return;
    }
    const uint32_t width = character.size() == 1 ? 1 : character.size() == 3 ? 2 : 0;
    if (width == 0) {  // a combining mark
      rows_.back().back() += character;
      return;
    }
    if (column_ + width > columns_) {
      wrapped_ = true;
      rows_.emplace_back();
      column_ = 0;
    }
    rows_.back().resize(std::max<size_t>(rows_.back().size(), column_ + width), " ");
    rows_.back()[column_] = character;
    for (uint32_t i = 1; i < width; ++i) rows_.back()[column_ + i].clear();
    column_ += width;
  }

  uint32_t columns_, column_ = 0;
  std::vector<std::vector<std::string>> rows_ = {{}};
  bool wrapped_ = false;  // by the terminal itself, which breaks words
};

struct Terminal {
  explicit Terminal(uint32_t width) : columns(width), screen(width) {}

  uint32_t columns;
  Screen screen;
  std::string written;
  WordWrapper wrapper{[this] { return columns; },
                      [this](std::string_view text) {
                        written += text;
                        screen.write(text);
                      }};
};

std::vector<std::string> wrapped(std::string_view text, uint32_t columns) {
  Terminal terminal(columns);
  terminal.wrapper.add(text);
  terminal.wrapper.end();
  EXPECT_FALSE(terminal.screen.wrapped()) << text;
  auto lines = terminal.screen.lines();
  EXPECT_EQ(lines.back(), "") << "the cursor is on a new line";
  lines.pop_back();
  return lines;
}

TEST(WordWrapper, BreaksBetweenWords) {
  EXPECT_THAT(wrapped("The fox found a lantern.", 10),
              ElementsAre("The fox", "found a", "lantern."));
  EXPECT_THAT(wrapped("abcde fghij", 5), ElementsAre("abcde", "fghij")) << "exactly as wide";
  EXPECT_THAT(wrapped("abcd  efgh", 10), ElementsAre("abcd  efgh"));
  EXPECT_THAT(wrapped("one two\n\n  three four", 9), ElementsAre("one two", "", "  three", "four"));
  EXPECT_THAT(wrapped("", 10), ElementsAre(""));
  EXPECT_THAT(wrapped("one   ", 4), ElementsAre("one")) << "spaces at the end are no line";
}

TEST(WordWrapper, ShowsTheSameHoweverTheTextIsCutIntoTokens) {
  const std::string text =
      "Once upon a time, there was a \xe7\x8b\x90\xe7\x8b\xb8\xe3\x80\x82 It lived\n\tin a forest "
      "with-many-trees and supercalifragilisticexpialidocious birds  .";
  for (uint32_t columns = 2; columns <= 40; ++columns) {
    const auto whole = wrapped(text, columns);
    for (const size_t piece : {1, 2, 3, 7})
      for (const bool slow : {false, true}) {
        Terminal terminal(columns);
        std::string_view rest = text;
        while (!rest.empty()) {
          size_t bytes = 0;
          for (size_t i = 0; i < piece && bytes < rest.size(); ++i)
            bytes += utf8_step(rest.substr(bytes)).bytes;
          terminal.wrapper.add(rest.substr(0, bytes));
          if (slow) terminal.wrapper.show_held();
          rest.remove_prefix(bytes);
        }
        terminal.wrapper.end();
        EXPECT_FALSE(terminal.screen.wrapped()) << columns;
        auto lines = terminal.screen.lines();
        lines.pop_back();
        EXPECT_EQ(lines, whole) << columns << " columns, pieces of " << piece << ", slow " << slow;
        if (!slow) {
          EXPECT_THAT(terminal.written, Not(HasSubstr("\033")));
        }
      }
  }
}

TEST(WordWrapper, HoldsAWordBackUntilItEndsOrTimePasses) {
  Terminal terminal(12);
  terminal.wrapper.add("The lan");
  EXPECT_EQ(terminal.written, "The");
  terminal.wrapper.show_held();
  EXPECT_EQ(terminal.written, "The lan");
  terminal.wrapper.show_held();
  EXPECT_EQ(terminal.written, "The lan") << "once";
  terminal.wrapper.add("terns");
  EXPECT_EQ(terminal.written, "The lan");
  terminal.wrapper.add(" ");
  EXPECT_EQ(terminal.written, "The lanterns");
}

TEST(WordWrapper, MovesAWordThatWasShownTooEarly) {
  Terminal terminal(10);
  terminal.wrapper.add("The lan");
  terminal.wrapper.show_held();
  terminal.wrapper.add("terns ");
  EXPECT_THAT(terminal.screen.lines(), ElementsAre("The", "lanterns"));
  // Up to the last column, where a terminal's cursor stays.
  Terminal full(10);
  full.wrapper.add("The lanter");
  full.wrapper.show_held();
  full.wrapper.add("ns ");
  EXPECT_THAT(full.screen.lines(), ElementsAre("The", "lanterns"));
}

TEST(WordWrapper, CutsAWordThatIsLongerThanALine) {
  EXPECT_THAT(wrapped("see http://example.com/path ok", 10),
              ElementsAre("see", "http://exa", "mple.com/p", "ath ok"));
  EXPECT_THAT(wrapped("        abcdefgh", 8), ElementsAre("abcdefgh")) << "no room for the indent";
}

TEST(WordWrapper, CountsWideCharactersAndBreaksBetweenThem) {
  const std::string fox = "\xe7\x8b\x90", stop = "\xe3\x80\x82", open = "\xe3\x80\x8c";
  EXPECT_THAT(wrapped(fox + fox + fox + fox + fox, 5), ElementsAre(fox + fox, fox + fox, fox));
  EXPECT_THAT(wrapped(fox + fox + stop, 4), ElementsAre(fox, fox + stop))
      << "no line begins with a full stop";
  EXPECT_THAT(wrapped(fox + open + fox, 4), ElementsAre(fox, open + fox))
      << "and none ends with an opening bracket";
  EXPECT_THAT(wrapped("abc" + fox, 4), ElementsAre("abc", fox));
}

TEST(WordWrapper, CountsCombiningMarksAsNothing) {
  const std::string accented = "e\xcc\x81";
  EXPECT_THAT(wrapped(accented + accented + accented + " ab", 6),
              ElementsAre(accented + accented + accented + " ab"));
}

TEST(WordWrapper, FollowsATerminalThatIsResized) {
  Terminal terminal(20);
  terminal.wrapper.add("one two three ");
  terminal.columns = 9;
  terminal.wrapper.add("four five six ");
  EXPECT_THAT(terminal.screen.lines(), ElementsAre("one two three", "four five", "six"));
  terminal.columns = 20;
  terminal.wrapper.add("seven eight ");
  EXPECT_THAT(terminal.screen.lines(),
              ElementsAre("one two three", "four five", "six seven eight"));
}

TEST(WordWrapper, PassesTextOnWhereThereIsNoTerminal) {
  std::string written;
  WordWrapper wrapper([] { return 0u; }, [&](std::string_view text) { written += text; });
  wrapper.add("  spaces  stay \t and words are not he");
  EXPECT_EQ(written, "  spaces  stay \t and words are not he");
  wrapper.add("ld\xff");
  wrapper.end();
  EXPECT_EQ(written, "  spaces  stay \t and words are not held\xff\n");
}

TEST(WrapWords, GivesTheTextInLines) {
  EXPECT_EQ(wrap_words("The fox found a lantern.", 10), "The fox\nfound a\nlantern.");
  EXPECT_EQ(wrap_words("The fox found a lantern.", 0), "The fox found a lantern.");
  EXPECT_EQ(wrap_words("", 10), "");
}

TEST(CharacterWidth, IsThatOfTerminals) {
  EXPECT_EQ(character_width('a'), 1u);
  EXPECT_EQ(character_width(0x00e9), 1u) << "e with an accent";
  EXPECT_EQ(character_width(0x0301), 0u) << "a combining accent";
  EXPECT_EQ(character_width(0x200d), 0u) << "a joiner";
  EXPECT_EQ(character_width(0x72d0), 2u) << "an ideograph";
  EXPECT_EQ(character_width(0xac00), 2u) << "a Hangul syllable";
  EXPECT_EQ(character_width(0xff21), 2u) << "a full-width letter";
  EXPECT_EQ(character_width(0x1f98a), 2u) << "a fox";
  EXPECT_EQ(character_width('\033'), 0u);
}

TEST(CharacterWidth, JoinedEmojiAreNotBroken) {
  EXPECT_TRUE(may_break_between(0x1f98a, 0x1f98a));
  EXPECT_FALSE(may_break_between(0x1f469, 0x200d)) << "a woman, to be joined";
  EXPECT_FALSE(may_break_between(0x200d, 0x1f4bb)) << "with a computer";
  EXPECT_FALSE(may_break_between(0x1f44d, 0x1f3fd)) << "a thumb and its colour";
  EXPECT_FALSE(may_break_between('a', 'b'));
}

}  // namespace
}  // namespace hearth
