#include "ui/data/soft_wrap.h"

#include <string>

#include <gtest/gtest.h>

namespace hearth {
namespace {

float one(char32_t) { return 1; }

struct WrappedBox {
  SoftWrap wrap;
  size_t cursor = 0;

  explicit WrappedBox(std::string_view text, size_t at) : cursor(at) { wrap.set(text, 10, one); }
  // As the user sees it, with the cursor as |.
  std::string seen() const {
    std::string text = wrap.shown();
    return text.insert(cursor, "|");
  }
  void type(std::string_view text) {
    std::string shown = wrap.shown();
    shown.insert(cursor, text);
    cursor = wrap.edit(shown, cursor + text.size(), 10, one);
  }
  void backspace() {
    std::string shown = wrap.shown();
    shown.erase(cursor - 1, 1);
    cursor = wrap.edit(shown, cursor - 1, 10, one);
  }
};

TEST(SoftWrap, LongLinesAreBrokenAndTheTextStaysAsItIs) {
  WrappedBox box("the quick brown fox\nran", 0);
  EXPECT_EQ(box.wrap.shown(), "the quick \nbrown fox\nran");
  EXPECT_EQ(box.wrap.text(), "the quick brown fox\nran");
}

TEST(SoftWrap, TypingMovesWordsToTheNextLineAndTheCursorWithThem) {
  WrappedBox box("the quick", 9);
  box.type(" ");
  box.type("b");
  EXPECT_EQ(box.seen(), "the quick \nb|");
  EXPECT_EQ(box.wrap.text(), "the quick b");
  box.type("rown fox runs");
  EXPECT_EQ(box.wrap.text(), "the quick brown fox runs");
  EXPECT_EQ(box.seen(), "the quick \nbrown fox \nruns|");
}

TEST(SoftWrap, AnInsertionInTheMiddleKeepsWhatFollows) {
  WrappedBox box("the quick brown fox", 4);
  box.type("very ");
  EXPECT_EQ(box.wrap.text(), "the very quick brown fox");
  EXPECT_EQ(box.seen(), "the very |\nquick \nbrown fox");
}

// At the beginning of a wrapped line, Backspace deletes the blank before it, not the added feed.
TEST(SoftWrap, BackspaceDeletesTextAcrossAnAddedLineFeed) {
  WrappedBox box("the quick brown", 11);
  ASSERT_EQ(box.seen(), "the quick \n|brown");
  box.backspace();
  EXPECT_EQ(box.wrap.text(), "the quickbrown");
  box.type(" ");
  EXPECT_EQ(box.wrap.text(), "the quick brown");
}

TEST(SoftWrap, RealLineFeedsCanBeTypedAndDeleted) {
  WrappedBox box("ab", 1);
  box.type("\n");
  EXPECT_EQ(box.wrap.text(), "a\nb");
  box.backspace();
  EXPECT_EQ(box.wrap.text(), "ab");
  EXPECT_EQ(box.seen(), "a|b");
}

TEST(SoftWrap, EverythingCanBeDeleted) {
  WrappedBox box("the quick brown fox", 0);
  box.cursor = box.wrap.edit("", 0, 10, one);
  EXPECT_EQ(box.wrap.text(), "");
  EXPECT_EQ(box.seen(), "|");
}

}  // namespace
}  // namespace hearth
