// Replies that the token limit cuts: the beginning of a marker or of a call is not shown as text.
#include <gtest/gtest.h>

#include "engine/text/tool_calls/reply_parser.h"
#include "tests/engine/text/tool_calls/replies.h"

namespace hearth {
namespace {

std::string cut_reply(std::string_view format, std::string_view text,
                      const ReasoningMarkers* reasoning = nullptr) {
  ReplyParser parser({.format = {.calls = find_call_format(format), .reasoning = reasoning},
                      .tools = testing::weather_tools()});
  std::vector<ReplyEvent> events = parser.push(text);
  testing::join(events, parser.finish(true));
  return testing::describe(events);
}

TEST(CutOffReply, HasNoBeginningOfACallInItsText) {
  struct Case {
    std::string_view format, text, expected;
  };
  const Case cases[] = {
      {"hermes", "\n\n<tool_", ""},
      {"hermes", "<tool_call>\n{\"name\": \"a", ""},
      {"hermes", "Let me look.\n<tool_call>\n{\"na", "Let me look."},
      {"hermes", "<tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n</tool_call>\n<tool_ca",
       "add({})"},
      {"hermes", "\n\n", ""},
      {"llama3", "{\"name\": \"ad", ""},
      {"mistral", "[TOOL_CALLS]ad", ""},
      {"harmony", "<|channel|>commentary to=fun", ""},
      {"gemma", "<|tool_call>call:ad", ""},
      {"glm", "<tool_call>ad", ""},
      {"deepseek", "<｜tool▁calls▁begin｜><｜tool▁call", ""},
      // What is more likely text stays.
      {"hermes", "if a <", "if a <"},
      {"hermes", "One, two ", "One, two "},
  };
  for (const Case& one : cases)
    EXPECT_EQ(cut_reply(one.format, one.text), one.expected) << one.format << ": " << one.text;
  EXPECT_EQ(cut_reply("hermes", "<thi", &testing::kThink), "");
}

// Where only a call can follow, a single byte of it is no text either.
TEST(CutOffReply, ThatHasToCallHasNoText) {
  for (const std::string_view text : {"<", "\n<to", "\n"}) {
    ReplyParser parser({.format = {.calls = &hermes_format()},
                        .tools = testing::weather_tools(),
                        .must_call = true});
    std::vector<ReplyEvent> events = parser.push(text);
    testing::join(events, parser.finish(true));
    EXPECT_TRUE(events.empty()) << text;
  }
}

// A call that has only a name yet is not a call without arguments.
TEST(CutOffReply, ACallWithoutItsArgumentsHasAWarning) {
  EXPECT_EQ(cut_reply("mistral", "[TOOL_CALLS]add[ARGS]"), "add()!the reply ended inside the call");
}

}  // namespace
}  // namespace hearth
