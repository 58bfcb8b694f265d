// Anthropic's Messages API: requests and replies alone, then over HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/adapted_apis.h"
#include "tools/server/api/anthropic_reply.h"
#include "tools/server/api/anthropic_request.h"

namespace hearth::testing {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json anthropic(const std::string& body, AnthropicCall call = AnthropicCall::kCreate) {
  const auto parsed = parse_anthropic_request(call, body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return {{"refused", error->param}};
  return std::get<ordered_json>(parsed);
}

TEST(AnthropicRequest, BecomesAChat) {
  const Translation cases[] = {
      {R"({"max_tokens":5,"messages":[{"role":"user","content":"Hi"}]})",
       R"({"max_tokens":5,"messages":[{"role":"user","content":"Hi"}]})"},
      {R"({"max_tokens":5,"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},
                                    {"type":"text","text":"b"}],
           "messages":[{"role":"user","content":[{"type":"text","text":"c"},
                                                 {"type":"text","text":"d"}]}],
           "stop_sequences":["x"],"stream":true,"top_k":3,"metadata":{"user_id":"u"}})",
       R"({"max_tokens":5,"messages":[{"role":"system","content":"ab"},
                                      {"role":"user","content":"cd"}],
           "stop":["x"],"stream":true,"top_k":3})"},
      {R"({"max_tokens":5,"messages":[
             {"role":"user","content":"Hi"},
             {"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":""},
                                            {"type":"text","text":"t"},
                                            {"type":"tool_use","id":"1","name":"f",
                                             "input":{"a":1}}]},
             {"role":"user","content":[{"type":"tool_result","tool_use_id":"1",
                                        "content":[{"type":"text","text":"42"}]},
                                       {"type":"text","text":"And?"}]}],
           "tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}],
           "tool_choice":{"type":"any","disable_parallel_tool_use":true}})",
       R"({"max_tokens":5,"messages":[
             {"role":"user","content":"Hi"},
             {"role":"assistant","content":"t","reasoning_content":"h","tool_calls":[
               {"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},
             {"role":"tool","tool_call_id":"1","content":"42"},
             {"role":"user","content":"And?"}],
           "tools":[{"type":"function","function":{"name":"f","description":"d",
                     "parameters":{"type":"object"}}}],
           "tool_choice":"required","parallel_tool_calls":false})"},
  };
  for (const Translation& test : cases)
    EXPECT_EQ(anthropic(test.from), json::parse(test.to)) << test.from;
  EXPECT_FALSE(
      anthropic(R"({"messages":[{"role":"user","content":"Hi"}]})", AnthropicCall::kCountTokens)
          .contains("refused"));
}

// The error named a field and a place of the chat completion that the request becomes.
TEST(AnthropicRequest, AResultWithoutItsCallIsRefusedWhereItIs) {
  const auto answering = [](const std::string& id) {
    return anthropic(R"({"max_tokens":5,"messages":[{"role":"user","content":"Hi"},
        {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},
                                  {"type":"tool_result","tool_use_id":")" +
                     id + R"(","content":"2"}]}]})");
  };
  EXPECT_EQ(answering("zz")["refused"], "messages[2].content[1].tool_use_id");
  EXPECT_EQ(answering("a")["messages"].back()["tool_call_id"], "a");
}

TEST(AnthropicRequest, RefusesByName) {
  const auto with = [](const std::string& fields) {
    return R"({"max_tokens":5,"messages":[{"role":"user","content":"Hi"}],)" + fields + "}";
  };
  const auto content = [](const std::string& blocks) {
    return R"({"max_tokens":5,"messages":[{"role":"user","content":[)" + blocks + "]}]}";
  };
  const std::pair<std::string, std::string> cases[] = {
      {R"({"messages":[{"role":"user","content":"Hi"}]})", "max_tokens"},
      {R"({"max_tokens":-1,"messages":[{"role":"user","content":"Hi"}]})", "max_tokens"},
      {R"({"max_tokens":5})", "messages"},
      {R"({"max_tokens":5,"messages":[{"role":"system","content":"x"}]})", "messages[0].role"},
      {R"({"max_tokens":5,"messages":[{"role":"user","content":"x"},
                                      {"role":"assistant","content":"{"}]})",
       "messages[1]"},
      {content(R"({"type":"image","source":{}})"), "messages[0].content[0]"},
      {content(R"({"type":"text","text":"a"},{"type":"document"})"), "messages[0].content[1]"},
      {content(R"({"type":"text"})"), "messages[0].content[0].text"},
      {content(R"({"type":"tool_result"})"), "messages[0].content[0].tool_use_id"},
      {with(R"("mcp_servers":[{}])"), "mcp_servers"},
      {with(R"("stop":["x"])"), "stop"},
      {with(R"("stop_sequences":"x")"), "stop_sequences"},
      {with(R"("system":[{"type":"image"}])"), "system[0]"},
      {with(R"("tool_choice":{"type":"robot"})"), "tool_choice"},
      {with(R"("tools":[{"type":"web_search_20250305","name":"web_search"}])"), "tools[0]"},
      {with(R"("thinking":{"type":"deep"})"), "thinking.type"},
  };
  for (const auto& [body, field] : cases) EXPECT_EQ(anthropic(body)["refused"], field) << body;
}

TEST(AnthropicReply, StreamsTheEventsOfItsMessage) {
  AnthropicReply streamed("msg_1", "m"), at_once("msg_1", "m");
  const std::vector<json> events = lines_of(run_stream(streamed, chunks_with_everything(), kEnd));
  EXPECT_THAT(types_of(events),
              ElementsAre("message_start", "content_block_start", "content_block_delta",
                          "content_block_delta", "content_block_stop", "content_block_start",
                          "content_block_delta", "content_block_delta", "content_block_stop",
                          "content_block_start", "content_block_delta", "content_block_delta",
                          "content_block_stop", "content_block_start", "content_block_stop",
                          "message_delta", "message_stop"));
  EXPECT_EQ(events[0]["message"]["usage"]["input_tokens"], 9);
  EXPECT_EQ(events[9]["index"], 2);
  at_once.start(9);
  const json whole = json::parse(at_once.whole(kWholeCompletion, kEnd));
  EXPECT_EQ(whole["stop_reason"], "tool_use");
  EXPECT_EQ(whole["content"][0]["thinking"], "Hmm.");
  EXPECT_EQ(whole["content"][1]["text"], "Let me look.");
  EXPECT_EQ(whole["content"][2]["input"], (json{{"a", 1}}));
  EXPECT_EQ(whole["content"][3]["input"], json::object());
  EXPECT_EQ(whole["usage"]["input_tokens"], 5);
  EXPECT_EQ(whole["usage"]["cache_read_input_tokens"], 4);
}

// Arguments that a model got wrong are passed through as text.
TEST(AnthropicReply, WrongArgumentsAreText) {
  AnthropicReply reply("msg_1", "m");
  json completion = kWholeCompletion;
  completion["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = "{\"a\":";
  const json whole = json::parse(reply.whole(completion, kEnd));
  EXPECT_EQ(whole["content"][2]["input"]["arguments"], "{\"a\":");
}

// A model may continue after a call.
TEST(AnthropicReply, KeepsTheOrderOfItsBlocks) {
  AnthropicReply reply("msg_1", "m");
  std::vector<json> deltas;
  for (const json& chunk : chunks_with_everything())
    if (chunk["choices"][0]["delta"].contains("tool_calls"))
      deltas.push_back(chunk["choices"][0]["delta"]);
  deltas.push_back({{"content", "Done."}});
  const json whole = json::parse(reply.whole(kWholeCompletion, kEnd, deltas));
  ASSERT_EQ(whole["content"].size(), 3u);
  EXPECT_EQ(whole["content"][0]["input"], (json{{"a", 1}}));
  EXPECT_EQ(whole["content"][1]["type"], "tool_use");
  EXPECT_EQ(whole["content"][2]["text"], "Done.");
}

class ServedMessages : public ServedApis {};
class ServedMessageCalls : public ServedCalls {};

TEST_F(ServedMessages, AreAnswered) {
  const std::string ask = R"({"model":"any","max_tokens":64,"messages":[
      {"role":"user","content":"Hi"}])";
  const json whole = post("/v1/messages", ask + "}").json();
  EXPECT_EQ(whole["content"][0]["text"], kText) << whole;
  EXPECT_EQ(whole["stop_reason"], "end_turn");
  const json stopped = post("/v1/messages", ask + R"(,"stop_sequences":["zz"," there"]})").json();
  EXPECT_EQ(stopped["content"][0]["text"], "Once upon a time,");
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], " there");
  const json counted = post("/v1/messages/count_tokens",
                            R"({"model":"any","messages":[{"role":"user","content":"Hi"}]})")
                           .json();
  const json& usage = whole["usage"];
  EXPECT_EQ(counted["input_tokens"],
            usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>());
  const HttpAnswer refused = post("/v1/messages", R"({"messages":[]})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.json()["type"], "error");
  EXPECT_EQ(refused.json()["error"]["type"], "invalid_request_error");
  const HttpAnswer bad = post("/v1/messages", ask + R"(,"stop_sequences":[1]})");
  EXPECT_THAT(bad.json()["error"]["message"].get<std::string>(), HasSubstr("'stop_sequences'"));
}

TEST_F(ServedMessages, TakeAnthropicsKeyHeader) {
  serve({.port = 0, .api_keys = {"key"}});
  const std::string body = R"({"max_tokens":4,"messages":[{"role":"user","content":"Hi"}]})";
  const int port = server_->port();
  EXPECT_EQ(HttpClient(port).post("/v1/messages", body, "x-api-key: key\r\n").status, 200);
  const HttpAnswer refused = HttpClient(port).post("/v1/messages", body, "x-api-key: no\r\n");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.json()["error"]["type"], "authentication_error");
  EXPECT_EQ(HttpClient(port).post("/v1/messages", body).status, 401);
}

TEST_F(ServedMessageCalls, GetTheirResults) {
  const std::string tools = R"("max_tokens":400,"tools":[{"name":"look","input_schema":{}}])";
  const std::string ask = R"({"role":"user","content":"Hi"})";
  const json first = post("/v1/messages", "{" + tools + R"(,"messages":[)" + ask + "]}").json();
  ASSERT_EQ(first["content"].size(), 2u) << first;
  EXPECT_EQ(first["stop_reason"], "tool_use");
  const json& call = first["content"][1];
  EXPECT_EQ(call["type"], "tool_use");
  EXPECT_EQ(call["input"], (json{{"a", 1}}));
  const json answer = {{"role", "assistant"}, {"content", first["content"]}};
  const json result = {
      {"role", "user"},
      {"content",
       json::array({{{"type", "tool_result"}, {"tool_use_id", call["id"]}, {"content", "42"}}})}};
  const HttpAnswer second = post("/v1/messages", "{" + tools + R"(,"messages":[)" + ask + "," +
                                                     answer.dump() + "," + result.dump() + "]}");
  EXPECT_EQ(second.status, 200) << second.body;
  const HttpAnswer stream =
      post("/v1/messages", "{" + tools + R"(,"stream":true,"messages":[)" + ask + "]}");
  std::string arguments;
  for (const json& event : lines_of(stream.body))
    if (event.value("delta", json::object()).value("type", "") == "input_json_delta")
      arguments += event["delta"]["partial_json"];
  EXPECT_EQ(json::parse(arguments), (json{{"a", 1}}));
}

}  // namespace
}  // namespace hearth::testing
