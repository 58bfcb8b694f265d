// Tools and reasoning in the chat API: the prompts that the model gets, and replies whole and as
// streams. The stand-in model says what each test wants it to.
#include <nlohmann/json.hpp>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/text/detokenizer.h"
#include "tests/server/tool_requests.h"
#include "tests/support/served_stand_in.h"
#include "tools/server/chat_prompt.h"

namespace hearth {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Its schema cannot be enforced, so that the model is free to write anything.
constexpr const char* kLooseTool =
    R"("tools":[{"type":"function","function":{"name":"get_weather","description":"Weather.",
    "parameters":{"type":"object","properties":{"city":{"type":"string"},
    "tags":{"type":"array","items":{"type":"string"},"uniqueItems":true}}}}}])";

// Its calls have no choice.
constexpr const char* kForcedTool =
    R"("tools":[{"type":"function","function":{"name":"get_weather",
    "parameters":{"type":"object","properties":{"city":{"enum":["Paris"]}},"required":["city"],
    "additionalProperties":false}}}])";

constexpr const char* kChatPath = "/v1/chat/completions";

// A model that always gives the same reply.
class ServedReply : public testing::ServedStandIn {
 protected:
  virtual std::string reply() const = 0;
  uint32_t context() const override { return 2048; }
  std::vector<TokenId> script() const override {
    std::vector<TokenId> ids =
        tokenizer_->encode(reply(), {.add_bos = false, .parse_special = true});
    ids.push_back(tokenizer_->vocabulary().end_of_generation.front());
    return ids;
  }

  json whole(const std::string& fields) const {
    const testing::HttpAnswer answer = post(kChatPath, asked(fields));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body)["choices"][0];
  }
  // The choices of a stream's chunks.
  std::vector<json> streamed(const std::string& fields) const {
    const testing::HttpAnswer answer =
        post(kChatPath, asked(fields + (fields.empty() ? "" : ",") + R"("stream":true)"));
    std::vector<json> choices;
    for (size_t at = answer.body.find("data: {"); at != std::string::npos;
         at = answer.body.find("data: {", at + 1))
      choices.push_back(json::parse(
          answer.body.substr(at + 6, answer.body.find('\n', at) - at - 6))["choices"][0]);
    return choices;
  }
};

class ServedCall : public ServedReply {
 protected:
  std::string reply() const override {
    return "Let me look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
           "\"Paris\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
           "{city: Oslo}}\n</tool_call>";
  }
};

TEST_F(ServedCall, IsPartOfTheMessage) {
  const json choice = whole(kLooseTool);
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], "Let me look.");
  const json& calls = choice["message"]["tool_calls"];
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0]["type"], "function");
  EXPECT_EQ(calls[0]["function"]["name"], "get_weather");
  EXPECT_EQ(calls[0]["function"]["arguments"], R"({"city": "Paris"})");
  EXPECT_FALSE(calls[0].contains("warning"));
  // Mistral's templates want nine letters and digits.
  EXPECT_EQ(calls[0]["id"].get<std::string>().size(), 9u);
  EXPECT_NE(calls[0]["id"], calls[1]["id"]);
  // Arguments that are not JSON are passed on as they are.
  EXPECT_EQ(calls[1]["function"]["arguments"], "{city: Oslo}}\n");
  EXPECT_EQ(calls[1]["warning"], "the arguments are not a JSON object");
}

TEST_F(ServedCall, ComesInDeltas) {
  std::string content, arguments[2];
  std::vector<json> first(2);
  json finish;
  for (const json& choice : streamed(kLooseTool)) {
    const json& delta = choice["delta"];
    if (!choice["finish_reason"].is_null()) finish = choice["finish_reason"];
    content += delta.value("content", "");
    if (!delta.contains("tool_calls")) continue;
    ASSERT_EQ(delta["tool_calls"].size(), 1u);
    const json& call = delta["tool_calls"][0];
    const size_t index = call["index"].get<size_t>();
    ASSERT_LT(index, 2u);
    if (first[index].is_null()) {
      first[index] = call;
      continue;
    }
    // Only the index and a piece.
    if (call.contains("warning")) continue;
    EXPECT_EQ(call.size(), 2u) << call;
    EXPECT_EQ(call["function"].size(), 1u) << call;
    arguments[index] += call["function"]["arguments"].get<std::string>();
  }
  EXPECT_EQ(finish, "tool_calls");
  EXPECT_EQ(content, "Let me look.");
  for (const json& call : first) {
    EXPECT_EQ(call.size(), 4u) << call;
    EXPECT_EQ(call["type"], "function");
    EXPECT_FALSE(call["id"].get<std::string>().empty());
    EXPECT_EQ(call["function"], json({{"name", "get_weather"}, {"arguments", ""}}));
  }
  EXPECT_EQ(arguments[0], R"({"city": "Paris"})");
  EXPECT_EQ(arguments[1], "{city: Oslo}}\n");
}

TEST_F(ServedCall, IsTextIfTheRequestHasNoTools) {
  EXPECT_EQ(whole("")["message"]["content"], reply());
  EXPECT_EQ(whole("")["finish_reason"], "stop");
  const json choice = whole(std::string(kLooseTool) + R"(,"tool_choice":"none")");
  EXPECT_EQ(choice["message"]["content"], reply());
  EXPECT_FALSE(choice["message"].contains("tool_calls"));
}

TEST_F(ServedCall, IsTheOnlyOneWithoutParallelCalls) {
  const json choice = whole(std::string(kLooseTool) + R"(,"parallel_tool_calls":false)");
  EXPECT_EQ(choice["message"]["tool_calls"].size(), 1u);
}

TEST_F(ServedCall, KeepsLogprobsOfAllTokens) {
  const json choice = whole(std::string(kLooseTool) + R"(,"logprobs":true)");
  std::string text;
  for (const json& token : choice["logprobs"]["content"]) text += token["token"];
  EXPECT_EQ(text, reply());
  std::string streamed_text;
  for (const json& one : streamed(std::string(kLooseTool) + R"(,"logprobs":true)"))
    if (one["logprobs"].is_object())
      for (const json& token : one["logprobs"]["content"]) streamed_text += token["token"];
  EXPECT_EQ(streamed_text, reply());
}

TEST_F(ServedCall, CutShortHasLengthAsItsReason) {
  const json choice = whole(std::string(kLooseTool) + R"(,"max_tokens":40)");
  EXPECT_EQ(choice["finish_reason"], "length");
}

// The template knows nothing of tools, so a system message explains them.
TEST_F(ServedCall, ToolsReachATemplateThatDoesNotShowThem) {
  const ServedModel model{
      .engine = **engine_,
      .tokenizer = *tokenizer_,
      .chat_template = chat_.get(),
      .style = std::make_shared<ReplyStyle>(find_reply_style(*tokenizer_, chat_.get()))};
  EXPECT_FALSE(model.style->template_shows_tools);
  const auto prompt = make_chat_prompt(model, parsed_well(asked(kWeatherTool)), {});
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  EXPECT_THAT(tokenizer_->decode(prompt->ids), HasSubstr("\"name\":\"get_weather\""));
}

class ServedNonsense : public ServedReply {
 protected:
  std::string reply() const override { return "Once upon a time, there was a fox."; }

  static void expect_paris(const json& choice) {
    EXPECT_EQ(choice["finish_reason"], "tool_calls") << choice;
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u) << choice;
    const json& function = choice["message"]["tool_calls"][0]["function"];
    EXPECT_EQ(function["name"], "get_weather");
    EXPECT_EQ(json::parse(function["arguments"].get<std::string>()), json({{"city", "Paris"}}));
    EXPECT_TRUE(choice["message"]["content"].is_null());
  }
};

TEST_F(ServedNonsense, BecomesACallIfOneIsRequired) {
  expect_paris(
      whole(std::string(kForcedTool) + R"(,"tool_choice":"required","parallel_tool_calls":false)"));
  expect_paris(whole(std::string(kForcedTool) +
                     R"(,"tool_choice":{"type":"function","function":{"name":"get_weather"}})"));
}

TEST_F(ServedNonsense, IsLeftAloneOtherwise) {
  EXPECT_EQ(whole(kForcedTool)["message"]["content"], reply());
}

TEST_F(ServedNonsense, RefusesSchemasThatCannotBeEnforced) {
  const auto refused = [&](const std::string& fields) {
    const testing::HttpAnswer answer = post(kChatPath, asked(fields));
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_THAT(answer.body, ::testing::Not(HasSubstr("%json")));
    return json::parse(answer.body)["error"]["param"];
  };
  const char* const parameters = "tools[0].function.parameters";
  EXPECT_EQ(refused(std::string(kLooseTool) + R"(,"tool_choice":"required")"), parameters);
  std::string strict = kLooseTool;
  strict.insert(strict.find("\"name\""), "\"strict\":true,");
  EXPECT_EQ(refused(strict), parameters);
  EXPECT_EQ(refused(std::string(kForcedTool) + R"(,"structured_outputs":{"regex":"a+"})"),
            "structured_outputs.regex");
}

TEST_F(ServedNonsense, NamesTheToolAtFault) {
  std::string two = kLooseTool;
  two.insert(two.find('[') + 1, R"({"type":"function","function":{"name":"ping"}},)");
  const testing::HttpAnswer answer =
      post(kChatPath,
           asked(two + R"(,"tool_choice":{"type":"function","function":{"name":"get_weather"}})"));
  EXPECT_EQ(answer.status, 400);
  const json error = json::parse(answer.body)["error"];
  EXPECT_EQ(error["param"], "tools[1].function.parameters");
  EXPECT_EQ(error["code"], "unsupported_schema");
  EXPECT_THAT(error["message"], HasSubstr("parameters': uniqueItems at #/properties/tags"));
}

// A limit that cuts the call: its beginning is not content.
TEST_F(ServedNonsense, ShowsNoCallThatIsCutOff) {
  const std::string fields = std::string(kForcedTool) + R"(,"tool_choice":"required")";
  for (int tokens = 1; tokens < 6; ++tokens) {
    const json choice = whole(fields + R"(,"max_tokens":)" + std::to_string(tokens));
    EXPECT_EQ(choice["finish_reason"], "length");
    const json& content = choice["message"]["content"];
    EXPECT_TRUE(content.is_null() || content == "") << choice;
  }
}

// A reply that begins a call by itself has to continue with arguments that follow the schema.
class ServedWrongCall : public ServedNonsense {
 protected:
  std::string reply() const override {
    return "I look. <tool_call>\n{\"name\": \"get_rain\", \"arguments\": {\"town\": 5}}\n"
           "</tool_call>";
  }
};

TEST_F(ServedWrongCall, IsKeptInsideTheSchema) {
  json choice = whole(std::string(kForcedTool) + R"(,"parallel_tool_calls":false)");
  EXPECT_EQ(choice["message"]["content"], "I look.");
  choice["message"]["content"] = nullptr;
  expect_paris(choice);
}

// Reasoning may mention the marker of a call without beginning one.
class ServedReasonedCall : public ServedNonsense {
 protected:
  std::string chat_source() const override {
    return "{{ messages[0].content }}{% if tools %}{{ tools | tojson }}{% endif %}"
           "{# <tool_call> #}{% if begun %}<think>\n{% endif %}{# </think> #}";
  }
  std::string reply() const override {
    return "<think>Is it <tool_call> then {?</think>\n<tool_call>\n{\"name\": \"get_rain\", "
           "\"arguments\": {\"town\": 5}}\n</tool_call>";
  }
};

TEST_F(ServedReasonedCall, IsKeptInsideTheSchemaAfterTheReasoning) {
  for (const char* const begun : {"false", "true"}) {
    const json choice =
        whole(std::string(kForcedTool) + R"(,"parallel_tool_calls":false,"chat_template_kwargs":)" +
              "{\"begun\":" + begun + "}");
    EXPECT_THAT(choice["message"].value("reasoning_content", ""),
                HasSubstr("Is it <tool_call> then {?"));
    expect_paris(choice);
  }
}

TEST_F(ServedReasonedCall, MayReasonBeforeACallThatIsRequired) {
  const json choice =
      whole(std::string(kForcedTool) + R"(,"parallel_tool_calls":false,"tool_choice":"required")");
  EXPECT_EQ(choice["message"].value("reasoning_content", ""), "Is it <tool_call> then {?");
  expect_paris(choice);
}

// The format of calls can be chosen if the template does not show it.
TEST_F(ServedNonsense, TheFormatOfCallsCanBeGiven) {
  const ReplyStyle style = find_reply_style(*tokenizer_, chat_.get(), &glm_format());
  EXPECT_EQ(style.format.calls, &glm_format());
  EXPECT_EQ(find_reply_style(*tokenizer_, chat_.get()).format.calls, &generic_format());
}

// The answer follows response_format, unless it calls.
TEST_F(ServedNonsense, AnswersBySchemaOrCalls) {
  const json choice = whole(std::string(kForcedTool) +
                            R"(,"response_format":{"type":"json_schema","json_schema":{"name":"a",
                            "schema":{"const":7}}})");
  const json& message = choice["message"];
  // White space may come before a JSON text.
  EXPECT_TRUE(message.contains("tool_calls") ||
              json::parse(message["content"].get<std::string>()) == 7)
      << message;
}

class ServedReasoning : public ServedReply {
 protected:
  std::string chat_source() const override {
    return "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
           "{% for t in tools or [] %}{{ t.function.name }}\n{% endfor %}assistant: "
           "{% if enable_thinking %}<think>\n{% endif %}";
  }
  std::string reply() const override { return "It is easy.\n</think>\n\n51"; }
};

TEST_F(ServedReasoning, IsApartFromTheContent) {
  const json choice = whole(R"("chat_template_kwargs":{"enable_thinking":true})");
  EXPECT_EQ(choice["message"]["content"], "51");
  EXPECT_EQ(choice["message"]["reasoning_content"], "It is easy.");
  EXPECT_EQ(choice["finish_reason"], "stop");
  std::string content, reasoning;
  for (const json& one : streamed(R"("chat_template_kwargs":{"enable_thinking":true})")) {
    content += one["delta"].value("content", "");
    reasoning += one["delta"].value("reasoning_content", "");
  }
  EXPECT_EQ(content, "51");
  EXPECT_EQ(reasoning, "It is easy.");
}

// Without the marker in the prompt the reply is not reasoning.
TEST_F(ServedReasoning, IsSwitchedOffByTheTemplate) {
  const json choice = whole(R"("chat_template_kwargs":{"enable_thinking":false})");
  EXPECT_EQ(choice["message"]["content"], reply());
  EXPECT_FALSE(choice["message"].contains("reasoning_content"));
}

TEST_F(ServedReasoning, TheTemplateGetsTheTools) {
  const ReplyStyle style = find_reply_style(*tokenizer_, chat_.get());
  EXPECT_TRUE(style.template_shows_tools);
  const ServedModel model{.engine = **engine_,
                          .tokenizer = *tokenizer_,
                          .chat_template = chat_.get(),
                          .style = std::make_shared<ReplyStyle>(style)};
  const auto prompt = make_chat_prompt(
      model, parsed_well(asked(std::string(kWeatherTool) + R"(,"reasoning_effort":"none")")), {});
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  EXPECT_THAT(tokenizer_->decode(prompt->ids), HasSubstr("get_weather\nassistant:"));
  EXPECT_FALSE(prompt->begins_in_reasoning);
}

// A model whose markers are control tokens, which have no text in other replies.
class ServedControlTokens : public ServedReply {
 protected:
  std::string chat_source() const override {
    return "{{ messages[0].content }}{% if tools %}{{ tools | tojson }}{% endif %}<|end|>"
           "{# <think> [TOOL_CALLS] [ARGS] #}";
  }
  std::string reply() const override { return "Hi"; }
};

TEST_F(ServedControlTokens, HaveTextWhereTheFormatNeedsThem) {
  const auto end = tokenizer_->encode("<|end|>", {.add_bos = false, .parse_special = true});
  ASSERT_EQ(end.size(), 1u);
  ASSERT_TRUE(tokenizer_->is_control(end[0]));
  const std::string_view markers[] = {"[TOOL_CALLS]", "a <|end|> b"};
  EXPECT_EQ(tokens_in_markers(*tokenizer_, markers), end);
  EXPECT_TRUE(tokens_in_markers(*tokenizer_, std::span(markers).first(1)).empty());
  EXPECT_EQ(Detokenizer(*tokenizer_).push(end[0]), "");
  EXPECT_EQ(Detokenizer(*tokenizer_, true, false, end).push(end[0]), "<|end|>");
  const ReplyStyle style = find_reply_style(*tokenizer_, chat_.get());
  EXPECT_EQ(style.format.calls->name, "mistral");
}

}  // namespace
}  // namespace hearth
