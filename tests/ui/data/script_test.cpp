#include "ui/data/script.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(ScriptTest, ReadsActionsWithQuotesAndComments) {
  const auto steps = parse_script(
      "# a tour\n"
      "click \"New chat\"\n\n"
      "type \"say \\\"hi\\\"\\nnow\"   # two lines\n"
      "wait chat.answering == 0 60\n"
      "key Ctrl+Enter\n"
      "scroll \"Pause\" -4\n"
      "rate 7.5\n"
      "close");
  ASSERT_TRUE(steps.ok()) << steps.error().message;
  ASSERT_EQ(steps->size(), 7u);
  EXPECT_EQ((*steps)[0].text, "New chat");
  EXPECT_EQ((*steps)[0].line, 2u);
  EXPECT_EQ((*steps)[1].text, "say \"hi\"\nnow");
  EXPECT_EQ((*steps)[2].condition.name, "chat.answering");
  EXPECT_EQ((*steps)[2].seconds, 60);
  EXPECT_EQ((*steps)[4].text, "Pause");
  EXPECT_EQ((*steps)[4].lines, -4);
  EXPECT_EQ((*steps)[5].action, ScriptAction::kRate);
  EXPECT_EQ((*steps)[5].seconds, 7.5);
  EXPECT_EQ((*steps)[6].action, ScriptAction::kClose);
}

TEST(ScriptTest, ErrorsNameTheLine) {
  const auto error_of = [](std::string_view text) {
    const auto steps = parse_script(text);
    return steps.ok() ? std::string() : steps.error().message;
  };
  EXPECT_EQ(error_of("close\ndance"), "line 2: unknown action 'dance'");
  EXPECT_EQ(error_of("click \"oh"), "line 1: a quote is not closed");
  EXPECT_EQ(error_of("click"), "line 1: 'click' takes 1 argument, not 0");
  EXPECT_EQ(error_of("wait a ~ 3"), "line 1: '~' is not one of == != < <= > >= contains");
  EXPECT_EQ(error_of("frames many"), "line 1: 'many' is not a number of seconds");
  EXPECT_FALSE(error_of("seconds nan").empty());
  EXPECT_FALSE(error_of("wait a == 1 nan").empty());
}

TEST(ScriptTest, ValuesAreComparedAsNumbersIfBothAreNumbers) {
  const std::map<std::string, ScriptValue> values = {{"rows", 10.0}, {"text", std::string("a fox")}};
  const auto holds = [&](const char* name, const char* comparison, const char* value) {
    return satisfies(values, {name, comparison, value});
  };
  EXPECT_TRUE(holds("rows", ">", "9"));
  EXPECT_FALSE(holds("rows", "<", "9"));
  EXPECT_TRUE(holds("rows", "==", "10"));
  EXPECT_TRUE(holds("rows", "!=", "11"));
  EXPECT_TRUE(holds("text", "contains", "fox"));
  EXPECT_FALSE(holds("text", "contains", "cat"));
  EXPECT_TRUE(holds("text", "==", "a fox"));
  EXPECT_FALSE(holds("nothing", "!=", "1"));
}

}  // namespace
}  // namespace hearth
