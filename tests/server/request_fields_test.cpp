// Which fields are refused by name, which are accepted, and which are suggested instead.
#include "tools/server/request_fields.h"

#include <nlohmann/json.hpp>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// The error of a body with one more field; empty: none.
ApiError field_error(ApiKind kind, const std::string& fields) {
  const std::string own = kind == ApiKind::kChat ? R"("messages":[])" : R"("prompt":"a")";
  return check_fields(kind, json::parse("{" + own + "," + fields + "}"))
      .value_or(ApiError{.status = 0});
}

TEST(RequestFields, FieldsThatWouldChangeTheAnswerAreRefusedByName) {
  const std::pair<const char*, const char*> fields[] = {
      {"functions", R"([{"name":"f"}])"},
      {"function_call", R"({"name":"f"})"},
      {"guided_json", R"({"type":"object"})"},
      {"guided_regex", R"("a+")"},
      {"guided_choice", R"(["yes","no"])"},
      {"best_of", "3"},
      {"audio", R"({"voice":"alloy","format":"wav"})"},
      {"modalities", R"(["text","audio"])"},
      {"verbosity", R"("low")"},
      {"web_search_options", R"({"search_context_size":"low"})"},
      {"store", "true"},
      {"chat_template", R"("{{ x }}")"},
      {"min_tokens", "5"},
      {"stop_token_ids", "[2]"},
      {"skip_special_tokens", "false"},
      {"tfs_z", "0.9"},
  };
  for (const auto& [name, value] : fields) {
    for (const ApiKind kind : {ApiKind::kChat, ApiKind::kCompletion}) {
      const ApiError error = field_error(kind, "\"" + std::string(name) + "\":" + value);
      EXPECT_EQ(error.status, 400) << name << value;
      EXPECT_EQ(error.param, name);
      EXPECT_EQ(error.code, "unsupported_parameter") << name;
      EXPECT_THAT(error.message, HasSubstr(name));
    }
  }
}

TEST(RequestFields, ToolsAndReasoningBelongToChats) {
  const std::pair<const char*, const char*> fields[] = {
      {"tools", R"([{"type":"function","function":{"name":"f"}}])"},
      {"tool_choice", R"("required")"},
      {"reasoning_effort", R"("high")"},
      {"chat_template_kwargs", R"({"enable_thinking":false})"},
  };
  for (const auto& [name, value] : fields) {
    const std::string field = "\"" + std::string(name) + "\":" + value;
    EXPECT_EQ(field_error(ApiKind::kChat, field).status, 0) << name;
    EXPECT_EQ(field_error(ApiKind::kCompletion, field).param, name);
  }
}

TEST(RequestFields, ValuesThatAskForNothingAreAccepted) {
  for (const char* fields : {R"("tools":null)",
                             R"("tools":[])",
                             R"("tool_choice":"none")",
                             R"("tool_choice":"auto")",
                             R"("functions":[])",
                             R"("function_call":"auto")",
                             R"("response_format":{"type":"text"})",
                             R"("response_format":null)",
                             R"("echo":false)",
                             R"("suffix":null)",
                             R"("suffix":"")",
                             R"("best_of":1)",
                             R"("n":3,"best_of":3)",
                             R"("modalities":["text"])",
                             R"("reasoning_effort":null)",
                             R"("reasoning_effort":"none")",
                             R"("verbosity":"medium")",
                             R"("store":false)",
                             R"("guided_json":null)",
                             R"("grammar":"")",
                             R"("min_tokens":0)",
                             R"("skip_special_tokens":true)",
                             R"("typical_p":1.0)",
                             R"("mirostat":0)",
                             R"("anything":null)"})
    for (const ApiKind kind : {ApiKind::kChat, ApiKind::kCompletion})
      EXPECT_EQ(field_error(kind, fields).status, 0) << fields;
}

// What the openai package and others send along without asking for anything.
TEST(RequestFields, HarmlessFieldsAreAccepted) {
  for (const char* fields :
       {R"("user":"u")", R"("metadata":{"a":"b"})", R"("service_tier":"auto")",
        R"("safety_identifier":"x")", R"("prompt_cache_key":"k")", R"("cache_prompt":true)",
        R"("parallel_tool_calls":true)", R"("parallel_tool_calls":false)",
        R"("stream_options":{"include_usage":true})",
        R"("stream_options":{"include_usage":true,"include_obfuscation":false})",
        R"("stream_options":{"continuous_usage_stats":false})"})
    for (const ApiKind kind : {ApiKind::kChat, ApiKind::kCompletion})
      EXPECT_EQ(field_error(kind, fields).status, 0) << fields;
}

TEST(RequestFields, UnknownFieldsAreRefusedWithTheNearestName) {
  const ApiError typo = field_error(ApiKind::kChat, R"("temprature":0.5)");
  EXPECT_EQ(typo.status, 400);
  EXPECT_EQ(typo.param, "temprature");
  EXPECT_EQ(typo.code, "unknown_parameter");
  EXPECT_THAT(typo.message, HasSubstr("temperature"));
  EXPECT_THAT(field_error(ApiKind::kChat, R"("max_token":1)").message, HasSubstr("max_tokens"));
  EXPECT_THAT(field_error(ApiKind::kChat, R"("n_predict":1)").message, HasSubstr("max_tokens"));
  // llama.cpp's name of 'repetition_penalty' is known.
  for (const ApiKind kind : {ApiKind::kChat, ApiKind::kCompletion})
    EXPECT_EQ(field_error(kind, R"("repeat_penalty":1.1)").status, 0);
  EXPECT_THAT(field_error(ApiKind::kChat, R"("xyzzy":1)").message, Not(HasSubstr("mean")));
  EXPECT_EQ(field_error(ApiKind::kChat, R"("stream_options":{"usage":true})").param,
            "stream_options.usage");
  // A client's own words are not repeated at any length.
  const ApiError large = field_error(ApiKind::kChat, "\"" + std::string(100000, 'x') + "\":1");
  EXPECT_LT(large.message.size(), 200u);
}

TEST(RequestFields, FieldsOfTheOtherEndpointSayWhereTheyBelong) {
  EXPECT_THAT(field_error(ApiKind::kChat, R"("prompt":"a")").message, HasSubstr("/v1/completions"));
  EXPECT_THAT(field_error(ApiKind::kCompletion, R"("messages":[])").message,
              HasSubstr("/v1/chat/completions"));
}

TEST(RequestFields, MessagesWithUnsupportedPartsAreRefusedByName) {
  struct Case {
    const char *param, *message;
  };
  const Case cases[] = {
      {"messages[2].role", R"({"content":"Hi"})"},
      {"messages[2].role", R"({"role":1,"content":"Hi"})"},
      {"messages[2].role", R"({"role":"function","name":"f","content":"Hi"})"},
      {"messages[2].role", R"({"role":"User","content":"Hi"})"},
      {"messages[2].function_call", R"({"role":"assistant","function_call":{"name":"f"}})"},
      {"messages[2].images", R"({"role":"user","content":"Hi","images":["aGk="]})"},
      {"messages[2].prefix", R"({"role":"assistant","content":"Hi","prefix":true})"},
      {"messages[2].content[1]",
       R"({"role":"user","content":[{"type":"text","text":"a"},
           {"type":"image_url","image_url":{"url":"data:"}}]})"},
      {"messages[2].content[0]",
       R"({"role":"user","content":[{"type":"input_audio","input_audio":{}}]})"},
      {"messages[2].content[0]", R"({"role":"user","content":[{"type":"file","file":{}}]})"},
      {"messages[2].content[0]", R"({"role":"user","content":["text"]})"},
      {"messages[2].content[0]", R"({"role":"user","content":[{"text":"no type"}]})"},
      {"messages[2].content[0].detail",
       R"({"role":"user","content":[{"type":"text","text":"a","detail":"low"}]})"},
  };
  for (const Case& test : cases) {
    const auto error = check_message(2, json::parse(test.message));
    ASSERT_TRUE(error.has_value()) << test.message;
    EXPECT_EQ(error->status, 400);
    EXPECT_EQ(error->param, test.param) << error->message;
    EXPECT_THAT(error->message, HasSubstr(test.param));
  }
}

// An answer may be sent back as it came.
TEST(RequestFields, MessagesMayHaveFieldsThatAskForNothing) {
  for (const char* message :
       {R"({"role":"assistant","content":"Hi","refusal":null,"annotations":[],"audio":null,
            "tool_calls":[],"function_call":null,"reasoning_content":"I thought."})",
        R"({"role":"user","name":"Ann","content":"Hi"})",
        R"({"role":"tool","tool_call_id":"1","content":"Hi"})",
        R"({"role":"user","content":[{"type":"text","text":"a","cache_control":{}}]})",
        R"({"role":"developer","content":"Be brief."})"})
    EXPECT_FALSE(check_message(0, json::parse(message)).has_value()) << message;
}

TEST(RequestFields, OtherEndpointsKnowTheirFields) {
  constexpr std::string_view kKnown[] = {"content", "add_special"};
  EXPECT_FALSE(check_known(json::parse(R"({"content":"a","x":null})"), kKnown).has_value());
  const auto error = check_known(json::parse(R"({"contents":"a"})"), kKnown);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->param, "contents");
  EXPECT_THAT(error->message, HasSubstr("content?"));
}

}  // namespace
}  // namespace hearth
