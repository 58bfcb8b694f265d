// Answers taken apart into text, reasoning and calls.
#include "ui/data/chat_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/text/chat_template.h"
#include "engine/weights/model_file.h"
#include "ui/data/chat_answer.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;

const ChatReplyForm kQwenForm{.calls = "hermes", .reasoning = "<think>"};

// Every word is a token.
ChatReply reply_of(const std::string& text, const ChatReplyForm& form) {
  ChatReply reply;
  reply.text = text;
  reply.form = form;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(' ', begin + 1), text.size());
    reply.tokens.push_back({.text = text.substr(begin, end - begin)});
    begin = end;
  }
  return reply;
}

// "text(...)", "reasoning(...)", "call(name, arguments)", "call(name, arguments): warning".
std::vector<std::string> described(const ChatReply& reply, const std::vector<ChatPart>& parts) {
  std::vector<std::string> all;
  for (const ChatPart& part : parts) {
    const std::string text = reply.text.substr(part.begin, part.end - part.begin);
    if (part.kind == ChatPart::Kind::kText) all.push_back("text(" + text + ")");
    if (part.kind == ChatPart::Kind::kReasoning) all.push_back("reasoning(" + text + ")");
    if (part.kind != ChatPart::Kind::kCall) continue;
    all.push_back("call(" + part.name + ", " + part.arguments + ")");
    if (!part.warning.empty()) all.back() += ": " + part.warning;
  }
  return all;
}

TEST(ChatParts, ReasoningTextAndCallsAreFoundInTheirOrder) {
  const ChatReply reply = reply_of(
      "<think>\nThe user wants the weather.\n</think>\n\nLet me look.\n<tool_call>\n{\"name\": "
      "\"weather\", \"arguments\": {\"city\": \"Rome\", \"days\": [1,2]}}\n</tool_call>",
      kQwenForm);
  const auto parts = parts_of(reply);
  EXPECT_THAT(described(reply, parts),
              ElementsAre("reasoning(The user wants the weather.)", "text(Let me look.)",
                          "call(weather, {\n  \"city\": \"Rome\",\n  \"days\": [1, 2]\n})"));
  EXPECT_EQ(tokens_in(reply, parts[0]), 5u);
  EXPECT_TRUE(parts[0].closed && parts[1].closed && parts[2].closed);
  EXPECT_EQ(answer_text(reply), "Let me look.");
}

TEST(ChatParts, ReasoningMayBeginInThePrompt) {
  ChatReplyForm form = kQwenForm;
  form.begins_in_reasoning = true;
  const ChatReply reply = reply_of("First think.</think>Yes.", form);
  EXPECT_THAT(described(reply, parts_of(reply)),
              ElementsAre("reasoning(First think.)", "text(Yes.)"));
}

TEST(ChatParts, HarmonysChannelsArePartsOfTheirOwn) {
  const ChatReply reply = reply_of(
      "<|channel|>analysis<|message|>Hm, a channel.<|end|><|start|>assistant<|channel|>commentary "
      "to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|><|start|>assistant<|channel|>"
      "final<|message|>a<|return|>",
      {.calls = "harmony"});
  EXPECT_THAT(described(reply, parts_of(reply)),
              ElementsAre("reasoning(Hm, a channel.)", "call(f, {\n  \"a\": 1\n})", "text(a)"));
}

// The markers between two messages are part of neither.
TEST(ChatParts, TwoMessagesAreTwoParts) {
  const ChatReply reply = reply_of(
      "<|channel|>commentary<|message|>One.<|end|><|start|>assistant<|channel|>final<|message|>"
      "Two.<|return|>",
      {.calls = "harmony"});
  EXPECT_THAT(described(reply, parts_of(reply)), ElementsAre("text(One.)", "text(Two.)"));
  EXPECT_EQ(answer_text(reply), "One.\nTwo.");
}

TEST(ChatParts, ArgumentsThatAreNotJsonStayAsTheyAre) {
  const ChatReply reply = reply_of(
      "<tool_call>{\"name\": \"f\", \"arguments\": {city: Rome}}\n</tool_call>", kQwenForm);
  EXPECT_THAT(described(reply, parts_of(reply)),
              ElementsAre("call(f, {city: Rome}}): the arguments are not a JSON object"));
}

TEST(ChatParts, ArgumentsAreIndented) {
  const ChatReply reply = reply_of(
      "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\":{\"b\":[],\"c\":[[1]]},\"d\":\"\\n\"}}"
      "</tool_call>",
      kQwenForm);
  EXPECT_EQ(parts_of(reply).at(0).arguments,
            "{\n  \"a\": {\n    \"b\": [],\n    \"c\": [\n      [1]\n    ]\n  },\n"
            "  \"d\": \"\\n\"\n}");
}

TEST(ChatParts, JsonWithoutMarkersIsText) {
  const std::string text = R"({"name": "Tom", "parameters": {"age": 3}})";
  const ChatReply reply = reply_of(text, {.calls = "llama3"});
  EXPECT_THAT(described(reply, parts_of(reply)), ElementsAre("text(" + text + ")"));
}

TEST(ChatParts, WithoutAFormEverythingIsText) {
  const std::string text = "<think>a</think><tool_call>{\"name\": \"f\"}</tool_call>";
  const ChatReply reply = reply_of(text, {});
  EXPECT_THAT(described(reply, parts_of(reply)), ElementsAre("text(" + text + ")"));
}

TEST(ChatParts, PartsOnlyGrowWhileAnAnswerIsGenerated) {
  const ChatReply whole = reply_of(
      "<think>One \U0001F98A two.</think>Three < four.<tool_call>{\"name\": \"f\", \"arguments\": "
      "{\"x\": 1}}</tool_call>",
      kQwenForm);
  ChatParts parts;
  ChatReply growing;
  growing.form = whole.form;
  std::vector<ChatPart> before;
  for (const char byte : whole.text) {
    growing.text += byte;
    parts.read(growing, false);
    ASSERT_GE(parts.parts().size(), before.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(parts.parts()[i].kind, before[i].kind);
      EXPECT_EQ(parts.parts()[i].begin, before[i].begin);
      EXPECT_GE(parts.parts()[i].end, before[i].end);
    }
    before = parts.parts();
  }
  parts.read(growing, true);
  EXPECT_EQ(described(growing, parts.parts()), described(whole, parts_of(whole)));
  EXPECT_THAT(described(growing, parts.parts()),
              ElementsAre("reasoning(One \U0001F98A two.)", "text(Three < four.)",
                          "call(f, {\n  \"x\": 1\n})"));
}

TEST(ChatParts, AnUnfinishedAnswerShowsWhatItHas) {
  const ChatReply reply = reply_of("<think>I was cut", kQwenForm);
  EXPECT_THAT(described(reply, parts_of(reply)), ElementsAre("reasoning(I was cut)"));
  EXPECT_EQ(answer_text(reply), reply.text);
}

TEST(ChatParts, TheFormIsSavedWithTheAnswer) {
  Chat chat;
  ChatExchange exchange;
  exchange.question = "?";
  exchange.reply = reply_of(
      "x</think>y", {.calls = "hermes", .reasoning = "<think>", .begins_in_reasoning = true});
  exchange.reply.finish = FinishReason::kStop;
  chat.exchanges.push_back(exchange);
  const auto again = read_chat(write_chat(chat));
  ASSERT_TRUE(again.ok()) << again.error().message;
  const ChatReply& reply = again->exchanges[0].reply;
  EXPECT_THAT(described(reply, parts_of(reply)), ElementsAre("reasoning(x)", "text(y)"));
}

// A model whose template has the words of a reasoning one.
TEST(ChatParts, EarlierReasoningReachesTheTemplateApartFromTheAnswer) {
  auto file = ModelFile::open(std::filesystem::path(HEARTH_SOURCE_DIR) /
                              "models/default/hearth-tiny-Q8_0.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  auto vocabulary = read_vocabulary(**file);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  vocabulary->chat_template =
      "{% for m in messages %}{{ m.role }}: {{ m.content }}"
      "{% if m.reasoning_content %} ({{ m.reasoning_content }}){% endif %}. {% endfor %}"
      "{% if add_generation_prompt %}assistant: <think>\n{% endif %}";
  const auto chat_template = ChatTemplate::create(*vocabulary);
  ASSERT_TRUE(chat_template.ok()) << chat_template.error().message;
  const auto tokenizer = Tokenizer::create(std::move(vocabulary).value());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const ReplyStyle style = find_reply_style(**tokenizer, chat_template->get());
  const ChatModel model{
      .tokenizer = tokenizer->get(), .chat = chat_template->get(), .style = &style, .context = 512};
  Chat chat;
  chat.exchanges.resize(2);
  chat.exchanges[0].question = "why";
  chat.exchanges[0].reply =
      reply_of("because</think>so",
               {.calls = "generic", .reasoning = "<think>", .begins_in_reasoning = true});
  chat.exchanges[1].question = "and";
  const auto prompt = chat_prompt(chat, 1, model);
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  std::string text;
  for (const TokenId id : prompt->ids) text += (*tokenizer)->piece(id, false);
  EXPECT_THAT(text, ::testing::HasSubstr("assistant: so (because)."));
  const ChatReplyForm form = reply_form(style, text);
  EXPECT_EQ(form.reasoning, "<think>");
  EXPECT_TRUE(form.begins_in_reasoning);
  EXPECT_FALSE(reply_form(style, "assistant: ").begins_in_reasoning);
}

}  // namespace
}  // namespace hearth::testing
