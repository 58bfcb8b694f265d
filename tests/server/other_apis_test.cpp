// What the APIs that are translated to and from OpenAI's have in common; llama.cpp's addresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/adapted_apis.h"
#include "tools/server/api/anthropic_reply.h"
#include "tools/server/api/field_rules.h"
#include "tools/server/api/ollama_reply.h"
#include "tools/server/api/responses_reply.h"

namespace hearth::testing {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using ::testing::HasSubstr;

TEST(OrderedBody, KeepsTheOrderAndRefusesWideObjects) {
  const auto parsed = parse_ordered_body(R"({"b":1,"a":{"d":1,"c":2}})");
  EXPECT_EQ(std::get<ordered_json>(parsed).dump(), R"({"b":1,"a":{"d":1,"c":2}})");
  std::string wide = "{\"a\":{\"0\":0";
  for (int i = 1; i < 3000; ++i) wide += ",\"" + std::to_string(i) + "\":0";
  EXPECT_TRUE(std::holds_alternative<ApiError>(parse_ordered_body(wide + "}}")));
  // A long list is fine.
  std::string longer = "{\"a\":[0";
  for (int i = 1; i < 3000; ++i) longer += ",0";
  EXPECT_TRUE(std::holds_alternative<ordered_json>(parse_ordered_body(longer + "]}")));
}

TEST(RenamedField, IsTheOtherApisInParamAndMessage) {
  constexpr FieldName kNames[] = {{"stop", "stop_sequences"}, {"messages", "input"}};
  const ApiError one = renamed({.message = "'stop' must hold strings", .param = "stop"}, kNames);
  EXPECT_EQ(one.param, "stop_sequences");
  EXPECT_EQ(one.message, "'stop_sequences' must hold strings");
  EXPECT_EQ(renamed({.message = "", .param = "messages[0].role"}, kNames).param, "input[0].role");
  EXPECT_EQ(renamed({.message = "", .param = "stopper"}, kNames).param, "stopper");
}

TEST(AdaptedReply, AnErrorEndsTheStream) {
  const json error = {{"error", {{"message", "lost"}, {"type", "server_error"}}}};
  AnthropicReply anthropic("msg_1", "m");
  EXPECT_THAT(run_stream(anthropic, {error}, kEnd), HasSubstr("event: error\n"));
  OllamaReply ollama(OllamaCall::kChat, "m");
  EXPECT_EQ(run_stream(ollama, {error}, kEnd), "{\"error\":\"lost\"}\n");
  ResponsesReply responses(
      {.id = "resp_1", .model = "m", .echo = json::object(), .conversation = "[]"}, nullptr);
  EXPECT_EQ(types_of(lines_of(run_stream(responses, {error}, kEnd))).back(), "response.failed");
}

class ServedAdapted : public ServedApis {};
class ServedLlamaCpp : public ServedApis {};

// A schema that allows one answer only, up to white space.
TEST_F(ServedAdapted, SchemasOfOtherApisAreFollowed) {
  const std::string schema = R"({"type":"object","properties":{"a":{"enum":["x"]}},
      "required":["a"],"additionalProperties":false})";
  const json response = post("/v1/responses",
                             R"({"input":"Hi","text":{"format":{"type":"json_schema","name":"n",
           "schema":)" + schema + "}}}")
                            .json();
  EXPECT_EQ(json::parse(response["output"][0]["content"][0]["text"].get<std::string>()),
            (json{{"a", "x"}}))
      << response;
  const json line = post("/api/chat", R"({"messages":[{"role":"user","content":"Hi"}],
                                          "stream":false,"format":)" +
                                          schema + "}")
                        .json();
  EXPECT_EQ(json::parse(line["message"]["content"].get<std::string>()), (json{{"a", "x"}})) << line;
  const HttpAnswer refused = post("/v1/responses", R"({"input":"Hi","text":{"format":{
      "type":"json_schema","name":"n","schema":{"type":"robot"}}}})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.json()["error"]["param"].get<std::string>(), HasSubstr("text.format"));
}

TEST_F(ServedLlamaCpp, PropsAndTemplates) {
  const json props = get("/props").json();
  EXPECT_EQ(props["default_generation_settings"]["n_ctx"], 256);
  EXPECT_EQ(props["total_slots"], 8);
  EXPECT_EQ(props["modalities"]["vision"], false);
  const json applied =
      post("/apply-template", R"({"messages":[{"role":"user","content":"Hi there"}]})").json();
  EXPECT_THAT(applied["prompt"].get<std::string>(), HasSubstr("Hi there"));
}

}  // namespace
}  // namespace hearth::testing
