// The APIs that are translated to and from OpenAI's chat completions: Responses, Anthropic's,
// Ollama's and llama.cpp's addresses. Requests and replies alone, then over HTTP on a stand-in for
// the device.
#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/served_stand_in.h"
#include "tools/server/api/anthropic_reply.h"
#include "tools/server/api/anthropic_request.h"
#include "tools/server/api/embeddings_request.h"
#include "tools/server/api/field_rules.h"
#include "tools/server/api/ollama_reply.h"
#include "tools/server/api/ollama_request.h"
#include "tools/server/api/response_store.h"
#include "tools/server/api/responses_reply.h"
#include "tools/server/api/responses_request.h"

namespace hearth::testing {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The translated body, or the field that is refused as {"refused": NAME}.
template <class T>
json outcome(const std::variant<T, ApiError>& parsed, const ordered_json T::*body) {
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) {
    EXPECT_EQ(error->status, 400);
    EXPECT_FALSE(error->message.empty());
    return {{"refused", error->param}};
  }
  return std::get<T>(parsed).*body;
}

json responses(const std::string& body) {
  return outcome(
      parse_responses_request(
          body,
          [](const std::string& id) -> std::optional<std::string> {
            if (id != "resp_1") return std::nullopt;
            return R"([{"role":"user","content":"A?"},{"role":"assistant","content":"B."}])";
          }),
      &ResponsesRequest::chat);
}
json anthropic(const std::string& body, AnthropicCall call = AnthropicCall::kCreate) {
  const auto parsed = parse_anthropic_request(call, body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return {{"refused", error->param}};
  return std::get<ordered_json>(parsed);
}
json ollama(OllamaCall call, const std::string& body) {
  return outcome(parse_ollama_request(call, body), &OllamaRequest::body);
}

struct Translation {
  std::string from, to;
};

TEST(ResponsesRequest, BecomesAChat) {
  const Translation cases[] = {
      {R"({"input":"Hi"})", R"({"messages":[{"role":"user","content":"Hi"}]})"},
      {R"({"input":"Hi","instructions":"Be brief.","max_output_tokens":5,"temperature":0,
           "stream":true,"store":false,"text":{"format":{"type":"text"}},"metadata":{"a":"b"},
           "truncation":"disabled","include":[],"background":false,"top_p":null})",
       R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}],
           "max_tokens":5,"temperature":0,"stream":true,"response_format":{"type":"text"}})"},
      {R"({"input":[{"role":"user","content":[{"type":"input_text","text":"a"},
                                              {"type":"input_text","text":"b"}]},
                    {"type":"reasoning","summary":[],"content":[
                      {"type":"reasoning_text","text":"Hm."}]},
                    {"type":"message","role":"assistant","id":"msg_1","status":"completed",
                     "content":[{"type":"output_text","text":"c","annotations":[]}]},
                    {"type":"function_call","call_id":"1","name":"f","arguments":"{}"},
                    {"type":"function_call_output","call_id":"1","output":"42"}]})",
       R"({"messages":[{"role":"user","content":"ab"},
                       {"role":"assistant","content":"c","reasoning_content":"Hm.","tool_calls":[
                         {"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},
                       {"role":"tool","tool_call_id":"1","content":"42"}]})"},
      {R"({"input":"C?","previous_response_id":"resp_1","instructions":"New."})",
       R"({"messages":[{"role":"system","content":"New."},{"role":"user","content":"A?"},
                       {"role":"assistant","content":"B."},{"role":"user","content":"C?"}]})"},
      {R"({"input":"Hi","text":{"format":{"type":"json_schema","name":"n","strict":true,
                                          "schema":{"type":"object"}}},
           "tools":[{"type":"function","name":"f","parameters":{}}],
           "tool_choice":{"type":"function","name":"f"},"reasoning":{"effort":"low"}})",
       R"({"messages":[{"role":"user","content":"Hi"}],
           "response_format":{"type":"json_schema","json_schema":{
             "name":"n","strict":true,"schema":{"type":"object"}}},
           "tools":[{"type":"function","function":{"name":"f","parameters":{}}}],
           "tool_choice":{"type":"function","function":{"name":"f"}},"reasoning_effort":"low"})"},
  };
  for (const Translation& test : cases)
    EXPECT_EQ(responses(test.from), json::parse(test.to)) << test.from;
}

TEST(ResponsesRequest, RefusesByName) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({})", "input"},
      {R"({"input":[]})", "input"},
      {R"({"input":[{"role":"user"}]})", "input[0].content"},
      {R"({"input":[{"role":"robot","content":"x"}]})", "input[0].role"},
      {R"({"input":[{"type":"item_reference","id":"x"}]})", "input[0]"},
      {R"({"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]})",
       "input[0].content[0]"},
      {R"({"input":"x","background":true})", "background"},
      {R"({"input":"x","conversation":"c"})", "conversation"},
      {R"({"input":"x","include":["a"]})", "include"},
      {R"({"input":"x","truncation":"auto"})", "truncation"},
      {R"({"input":"x","tools":[{"type":"web_search"}]})", "tools[0]"},
      {R"({"input":"x","reasoning":{"summary":"auto"}})", "reasoning.summary"},
      {R"({"input":"x","text":{"colour":"red"}})", "text.colour"},
      {R"({"input":"x","previous_response_id":"resp_2"})", "previous_response_id"},
      {R"({"input":"x","max_tokens":5})", "max_tokens"},
      {R"({"input":"x","store":1})", "store"},
  };
  for (const auto& [body, field] : cases) EXPECT_EQ(responses(body)["refused"], field) << body;
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

TEST(AnthropicRequest, RefusesByName) {
  const auto with = [](const std::string& fields) {
    return R"({"max_tokens":5,"messages":[{"role":"user","content":"Hi"}],)" + fields + "}";
  };
  const auto content = [](const std::string& blocks) {
    return R"({"max_tokens":5,"messages":[{"role":"user","content":[)" + blocks + "]}]}";
  };
  const std::pair<std::string, std::string> cases[] = {
      {R"({"messages":[{"role":"user","content":"Hi"}]})", "max_tokens"},
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

TEST(OllamaRequest, BecomesOpenAis) {
  const std::pair<OllamaCall, Translation> cases[] = {
      {OllamaCall::kChat,
       {R"({"model":"m","messages":[{"role":"user","content":"Hi"}],"keep_alive":"5m"})",
        R"({"messages":[{"role":"user","content":"Hi"}],"model":"m","stream":true})"}},
      {OllamaCall::kChat,
       {R"({"messages":[{"role":"user","content":"Hi","images":[]}],"stream":false,"think":false,
            "options":{"num_predict":7,"temperature":0,"repeat_penalty":1.1,"num_ctx":4096,
                       "stop":["x"]},"format":""})",
        R"({"messages":[{"role":"user","content":"Hi"}],"stream":false,"max_tokens":7,
            "temperature":0,"repetition_penalty":1.1,"stop":["x"],
            "chat_template_kwargs":{"enable_thinking":false}})"}},
      {OllamaCall::kChat,
       {R"({"messages":[{"role":"user","content":"Hi"},
                        {"role":"assistant","content":"","thinking":"Hm.","tool_calls":[
                          {"function":{"name":"f","arguments":{"a":1}}}]},
                        {"role":"tool","content":"42","tool_name":"f"}],
            "format":{"type":"object"}})",
        R"({"messages":[{"role":"user","content":"Hi"},
                        {"role":"assistant","content":"","reasoning_content":"Hm.","tool_calls":[
                          {"id":"call_0","type":"function",
                           "function":{"name":"f","arguments":"{\"a\":1}"}}]},
                        {"role":"tool","content":"42","tool_call_id":"call_0"}],
            "response_format":{"type":"json_schema","json_schema":{
              "name":"format","schema":{"type":"object"}}},"stream":true})"}},
      {OllamaCall::kGenerate,
       {R"({"prompt":"Hi","system":"Be brief.","format":"json","options":{"num_predict":-1}})",
        R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}],
            "response_format":{"type":"json_object"},"stream":true})"}},
      {OllamaCall::kGenerate,
       {R"({"prompt":"Hi","raw":true})", R"({"prompt":"Hi","stream":true})"}},
  };
  for (const auto& [call, test] : cases)
    EXPECT_EQ(ollama(call, test.from), json::parse(test.to)) << test.from;
}

TEST(OllamaRequest, RefusesByName) {
  const auto chat = [](const std::string& fields) {
    return R"({"messages":[{"role":"user","content":"Hi"}],)" + fields + "}";
  };
  const std::pair<std::string, std::string> cases[] = {
      {R"({"messages":[{"role":"user","content":"Hi","images":["x"]}]})", "messages[0].images"},
      {R"({"messages":[{"role":"user","content":[]}]})", "messages[0].content"},
      {chat(R"("prompt":"x")"), "prompt"},
      {chat(R"("format":"xml")"), "format"},
      {chat(R"("options":{"temprature":1})"), "options.temprature"},
      {chat(R"("options":{"repeat_last_n":3})"), "options.repeat_last_n"},
      {chat(R"("template":"x")"), "template"},
      {chat(R"("tool":[])"), "tool"},
  };
  for (const auto& [body, field] : cases)
    EXPECT_EQ(ollama(OllamaCall::kChat, body)["refused"], field) << body;
}

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

TEST(ResponseStore, DropsTheOldest) {
  ResponseStore store(/*most_responses=*/2, /*most_bytes=*/2000);
  store.add("a", {.object = "A", .conversation = "[]"});
  store.add("b", {.object = "B", .conversation = "[]"});
  EXPECT_TRUE(store.remove("a"));
  EXPECT_FALSE(store.remove("a"));
  store.add("c", {.object = "C", .conversation = "[]"});
  store.add("d", {.object = "D", .conversation = "[]"});
  EXPECT_FALSE(store.find("b"));
  EXPECT_EQ(store.find("c")->object, "C");
  store.add("e", {.object = std::string(1200, 'e'), .conversation = "[]"});
  EXPECT_FALSE(store.find("c"));
  EXPECT_TRUE(store.find("e"));
  store.add("f", {.object = std::string(3000, 'f'), .conversation = "[]"});
  EXPECT_FALSE(store.find("f")) << "larger than the store";
  EXPECT_FALSE(store.find("e"));
}

// Chunks of a chat completion with reasoning, text and two calls, cut in pieces.
std::vector<json> chunks_with_everything() {
  const auto chunk = [](json delta, json finish = nullptr) {
    return json{{"choices", json::array({{{"delta", std::move(delta)},
                                          {"finish_reason", std::move(finish)}}})}};
  };
  const auto call = [&](json entry) { return chunk({{"tool_calls", json::array({entry})}}); };
  return {chunk({{"role", "assistant"}, {"content", ""}}),
          chunk({{"reasoning_content", "Hm"}}),
          chunk({{"reasoning_content", "m."}}),
          chunk({{"content", "Let me"}}),
          chunk({{"content", " look."}}),
          call({{"index", 0}, {"id", "c1"}, {"function", {{"name", "f"}, {"arguments", ""}}}}),
          call({{"index", 0}, {"function", {{"arguments", "{\"a\""}}}}),
          call({{"index", 0}, {"function", {{"arguments", ":1}"}}}}),
          call({{"index", 1}, {"id", "c2"}, {"function", {{"name", "g"}, {"arguments", ""}}}}),
          chunk(json::object(), "tool_calls")};
}
const json kWholeCompletion = {
    {"choices",
     json::array({{{"finish_reason", "tool_calls"},
                   {"message",
                    {{"role", "assistant"},
                     {"reasoning_content", "Hmm."},
                     {"content", "Let me look."},
                     {"tool_calls",
                      json::array({{{"id", "c1"},
                                    {"type", "function"},
                                    {"function", {{"name", "f"}, {"arguments", "{\"a\":1}"}}}},
                                   {{"id", "c2"},
                                    {"type", "function"},
                                    {"function", {{"name", "g"}, {"arguments", ""}}}}})}}}}})}};

std::vector<json> lines_of(const std::string& text, const std::string& prefix = "data: ") {
  std::vector<json> events;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(prefix)) events.push_back(json::parse(line.substr(prefix.size())));
  return events;
}
std::vector<std::string> types_of(const std::vector<json>& events) {
  std::vector<std::string> types;
  for (const json& event : events) types.push_back(event["type"]);
  return types;
}
std::string run_stream(ReplyAdapter& reply, const std::vector<json>& chunks,
                       const GenerationEnd& end) {
  reply.start(end.prompt_tokens);
  std::string text;
  for (const json& chunk : chunks) text += reply.chunk(chunk);
  return text + reply.end(end);
}
const GenerationEnd kEnd{
    .reason = FinishReason::kStop,
    .prompt_tokens = 9,
    .cached_tokens = 4,
    .generated_tokens = 20,
    .times = {.admitted = 1, .first_token = 3, .last_token = 7, .finished = 8}};

TEST(ResponsesReply, StreamsTheEventsOfItsObject) {
  ResponseStore store;
  const auto make = [&](ResponseStore* place) {
    return ResponsesReply(
        {.id = "resp_7", .model = "m", .created = 1, .echo = json::object(), .conversation = "[]"},
        place);
  };
  ResponsesReply streamed = make(&store), at_once = make(nullptr);
  const std::vector<json> events = lines_of(run_stream(streamed, chunks_with_everything(), kEnd));
  EXPECT_THAT(types_of(events),
              ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                          "response.content_part.added", "response.reasoning_text.delta",
                          "response.reasoning_text.delta", "response.reasoning_text.done",
                          "response.content_part.done", "response.output_item.done",
                          "response.output_item.added", "response.content_part.added",
                          "response.output_text.delta", "response.output_text.delta",
                          "response.output_text.done", "response.content_part.done",
                          "response.output_item.done", "response.output_item.added",
                          "response.function_call_arguments.delta",
                          "response.function_call_arguments.delta",
                          "response.function_call_arguments.done", "response.output_item.done",
                          "response.output_item.added", "response.function_call_arguments.done",
                          "response.output_item.done", "response.completed"));
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i]["sequence_number"], i);
  const json whole = json::parse(at_once.whole(kWholeCompletion, kEnd));
  EXPECT_EQ(events.back()["response"], whole);
  ASSERT_EQ(whole["output"].size(), 4u);
  EXPECT_EQ(whole["output"][0]["content"][0]["text"], "Hmm.");
  EXPECT_EQ(whole["output"][1]["content"][0]["text"], "Let me look.");
  EXPECT_EQ(whole["output"][2]["arguments"], "{\"a\":1}");
  EXPECT_EQ(whole["output"][3]["call_id"], "c2");
  EXPECT_EQ(whole["usage"]["total_tokens"], 29);
  EXPECT_EQ(json::parse(store.find("resp_7")->object), whole);
  EXPECT_EQ(json::parse(store.find("resp_7")->conversation)[0]["tool_calls"][1]["id"], "c2");
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

TEST(OllamaReply, StreamsLines) {
  OllamaReply streamed(OllamaCall::kChat, "m"), at_once(OllamaCall::kChat, "m");
  const std::vector<json> lines =
      lines_of(run_stream(streamed, chunks_with_everything(), kEnd), "");
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0]["message"]["thinking"], "Hm");
  EXPECT_EQ(lines[2]["message"]["content"], "Let me");
  EXPECT_EQ(lines[4]["message"]["tool_calls"][0]["function"]["arguments"]["a"], 1);
  EXPECT_EQ(lines[6]["done"], true);
  EXPECT_EQ(lines[6]["done_reason"], "stop");
  EXPECT_EQ(lines[6]["prompt_eval_duration"], 2000000000);
  EXPECT_EQ(lines[6]["eval_duration"], 4000000000);
  EXPECT_EQ(lines[6]["total_duration"], 8000000000);
  const json whole = json::parse(at_once.whole(kWholeCompletion, kEnd));
  EXPECT_EQ(whole["message"]["content"], "Let me look.");
  EXPECT_EQ(whole["message"]["thinking"], "Hmm.");
  EXPECT_EQ(whole["message"]["tool_calls"].size(), 2u);
}

// Arguments that a model got wrong are passed through as text.
TEST(AnthropicReply, WrongArgumentsAreText) {
  AnthropicReply reply("msg_1", "m");
  json completion = kWholeCompletion;
  completion["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = "{\"a\":";
  const json whole = json::parse(reply.whole(completion, kEnd));
  EXPECT_EQ(whole["content"][2]["input"]["arguments"], "{\"a\":");
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

TEST(EmbeddingsRequest, IsReadOrRefusedByName) {
  const auto parse = [](const std::string& body) {
    return parse_embeddings_request(body, /*vocabulary=*/100, /*width=*/8);
  };
  const auto count = [&](const std::string& input) {
    return std::get<EmbeddingsRequest>(parse(R"({"input":)" + input + "}")).inputs.size();
  };
  EXPECT_EQ(count(R"("a fox")"), 1u);
  EXPECT_EQ(count(R"(["a","b"])"), 2u);
  EXPECT_EQ(count("[1,2,3]"), 1u);
  EXPECT_EQ(count("[[1,2],[3]]"), 2u);
  const auto all = std::get<EmbeddingsRequest>(parse(
      R"({"input":"x","dimensions":4,"encoding_format":"base64","pooling":"last","user":"u"})"));
  EXPECT_EQ(all.dimensions, 4u);
  EXPECT_TRUE(all.base64);
  EXPECT_EQ(all.pooling, Pooling::kLast);
  const std::pair<std::string, std::string> cases[] = {
      {R"({})", "input"},
      {R"({"input":""})", "input"},
      {R"({"input":[]})", "input"},
      {R"({"input":["a",""]})", "input"},
      {R"({"input":[100]})", "input"},
      {R"({"input":[[]]})", "input"},
      {R"({"input":{"a":1}})", "input"},
      {R"({"input":"x","dimensions":9})", "dimensions"},
      {R"({"input":"x","dimensions":0})", "dimensions"},
      {R"({"input":"x","dimensions":18446744073709551615})", "dimensions"},
      {R"({"input":"x","encoding_format":"int8"})", "encoding_format"},
      {R"({"input":"x","pooling":"cls"})", "pooling"},
      {R"({"input":"x","priority":2000})", "priority"},
      {R"({"input":"x","stream":true})", "stream"},
  };
  for (const auto& [body, field] : cases) {
    const auto parsed = parse(body);
    ASSERT_TRUE(std::holds_alternative<ApiError>(parsed)) << body;
    EXPECT_EQ(std::get<ApiError>(parsed).param, field) << body;
  }
}

TEST(EmbeddingVector, IsShortenedAndEncoded) {
  const std::vector<float> vector = {3, 4, 12};
  EXPECT_EQ(shortened(vector, 2), (std::vector<float>{0.6f, 0.8f}));
  EXPECT_EQ(shortened(std::vector<float>{0, 0}, 0), (std::vector<float>{0, 0}));
  EXPECT_EQ(to_base64(std::vector<float>{1.0f}), "AACAPw==");
  EXPECT_EQ(to_base64(std::vector<float>{1.0f, -2.0f}), "AACAPwAAAMA=");
  EXPECT_EQ(to_base64(std::vector<float>{1.0f, -2.0f, 0.5f}), "AACAPwAAAMAAAAA/");
}

// Over HTTP. Every answer is the same text.
class ServedApis : public ServedStandIn {
 protected:
  std::vector<TokenId> script() const override {
    return tokenizer_->encode("Once upon a time, there was a fox<|end|>",
                              {.add_bos = false, .parse_special = true});
  }
  static constexpr const char* kText = "Once upon a time, there was a fox";
};

TEST_F(ServedApis, ResponsesAreStoredContinuedAndDeleted) {
  const json first = post("/v1/responses", R"({"input":"Hi","instructions":"Be brief."})").json();
  EXPECT_EQ(first["status"], "completed") << first;
  EXPECT_EQ(first["output"][0]["content"][0]["text"], kText);
  EXPECT_EQ(first["instructions"], "Be brief.");
  EXPECT_EQ(first["usage"]["total_tokens"],
            first["usage"]["input_tokens"].get<int>() + first["usage"]["output_tokens"].get<int>());
  const std::string id = first["id"];
  EXPECT_EQ(get("/v1/responses/" + id).json(), first);
  const json second = post("/v1/responses",
                           R"({"input":"And?","store":false,"previous_response_id":")" + id + "\"}")
                          .json();
  EXPECT_EQ(second["previous_response_id"], id);
  const json same = post("/v1/responses", R"({"store":false,"input":[
      {"role":"user","content":"Hi"},{"role":"assistant","content":")" +
                                              std::string(kText) + R"("},
      {"role":"user","content":"And?"}]})")
                        .json();
  EXPECT_EQ(second["usage"]["input_tokens"], same["usage"]["input_tokens"]);
  EXPECT_EQ(get("/v1/responses/" + second["id"].get<std::string>()).status, 404);
  const std::string request = "DELETE /v1/responses/" + id + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const int status : {200, 404}) {
    HttpClient client(server_->port());
    ASSERT_TRUE(client.send(request));
    EXPECT_EQ(client.read().status, status);
  }
  EXPECT_EQ(get("/v1/responses/" + id).status, 404);
  EXPECT_EQ(post("/v1/responses/" + id, "{}").status, 405);
}

TEST_F(ServedApis, AResponseCanBeIncompleteOrAStream) {
  const json cut = post("/v1/responses", R"({"input":"Hi","max_output_tokens":3})").json();
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(cut["usage"]["output_tokens"], 3);
  const HttpAnswer stream = post("/v1/responses", R"({"input":"Hi","stream":true})");
  EXPECT_THAT(stream.head, HasSubstr("text/event-stream"));
  std::string text;
  for (const json& event : lines_of(stream.body))
    if (event["type"] == "response.output_text.delta") text += event["delta"];
  EXPECT_EQ(text, kText);
  EXPECT_THAT(stream.body, Not(HasSubstr("[DONE]")));
}

TEST_F(ServedApis, AnthropicsMessages) {
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

TEST_F(ServedApis, AnthropicsKeyHeader) {
  serve({.port = 0, .api_keys = {"key"}});
  const std::string body = R"({"max_tokens":4,"messages":[{"role":"user","content":"Hi"}]})";
  const int port = server_->port();
  EXPECT_EQ(HttpClient(port).post("/v1/messages", body, "x-api-key: key\r\n").status, 200);
  const HttpAnswer refused = HttpClient(port).post("/v1/messages", body, "x-api-key: no\r\n");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.json()["error"]["type"], "authentication_error");
  EXPECT_EQ(HttpClient(port).post("/v1/messages", body).status, 401);
}

TEST_F(ServedApis, OllamasChatAndGenerate) {
  const HttpAnswer stream =
      post("/api/chat", R"({"model":"m","messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_THAT(stream.head, HasSubstr("application/x-ndjson"));
  std::string text;
  const std::vector<json> lines = lines_of(stream.body, "");
  for (const json& line : lines) text += line["message"]["content"];
  EXPECT_EQ(text, kText);
  EXPECT_EQ(lines.back()["done_reason"], "stop");
  EXPECT_GT(lines.back()["eval_count"], 0);
  const json whole =
      post("/api/generate", R"({"prompt":"Hi","stream":false,"options":{"num_predict":3}})").json();
  EXPECT_EQ(whole["done_reason"], "length") << whole;
  EXPECT_EQ(whole["eval_count"], 3);
  const json raw = post("/api/generate", R"({"prompt":"Hi","raw":true,"stream":false})").json();
  EXPECT_EQ(raw["response"], kText);
  EXPECT_LT(raw["prompt_eval_count"], whole["prompt_eval_count"]);
  EXPECT_EQ(post("/api/generate", R"({"model":"m"})").json()["done_reason"], "load");
  const HttpAnswer refused =
      post("/api/chat", R"({"messages":[{"role":"user","content":"Hi"}],"options":{"top_p":2}})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.json()["error"].get<std::string>(), HasSubstr("'options.top_p'"));
}

TEST_F(ServedApis, OllamasModelsAndLlamaCppsProps) {
  const json tags = get("/api/tags").json();
  ASSERT_EQ(tags["models"].size(), 1u);
  EXPECT_EQ(tags["models"][0]["name"], "hearth");
  EXPECT_EQ(tags["models"][0]["digest"].get<std::string>().size(), 64u);
  EXPECT_EQ(post("/api/show", R"({"model":"hearth"})").json()["capabilities"][0], "completion");
  EXPECT_TRUE(get("/api/version").json().contains("version"));
  const json props = get("/props").json();
  EXPECT_EQ(props["default_generation_settings"]["n_ctx"], 256);
  EXPECT_EQ(props["total_slots"], 8);
  EXPECT_EQ(props["modalities"]["vision"], false);
  const json applied =
      post("/apply-template", R"({"messages":[{"role":"user","content":"Hi there"}]})").json();
  EXPECT_THAT(applied["prompt"].get<std::string>(), HasSubstr("Hi there"));
}

// Calls in every API, and their results on the way back.
class ServedCalls : public ServedStandIn {
 protected:
  uint32_t context() const override { return 2048; }
  std::vector<TokenId> script() const override {
    return tokenizer_->encode(
        "Let me look.\n<tool_call>\n{\"name\": \"look\", \"arguments\": "
        "{\"a\": 1}}\n</tool_call><|end|>",
        {.add_bos = false, .parse_special = true});
  }
};

TEST_F(ServedCalls, OfResponses) {
  const std::string tools = R"(,"tools":[{"type":"function","name":"look","parameters":{}}]})";
  const json first = post("/v1/responses", R"({"input":"Hi")" + tools).json();
  ASSERT_EQ(first["output"].size(), 2u) << first;
  EXPECT_EQ(first["output"][0]["content"][0]["text"], "Let me look.");
  const json& call = first["output"][1];
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_EQ(call["name"], "look");
  EXPECT_EQ(json::parse(call["arguments"].get<std::string>()), (json{{"a", 1}}));
  const json result = {
      {"type", "function_call_output"}, {"call_id", call["call_id"]}, {"output", "42"}};
  const json second = post("/v1/responses", R"({"previous_response_id":)" + first["id"].dump() +
                                                R"(,"input":[)" + result.dump() + "]" + tools)
                          .json();
  EXPECT_EQ(second["status"], "completed") << second;
}

TEST_F(ServedCalls, OfAnthropicsMessages) {
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

TEST_F(ServedCalls, OfOllama) {
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"look","parameters":{}}}])";
  const std::string ask = R"({"role":"user","content":"Hi"})";
  const json first =
      post("/api/chat", R"({"stream":false,)" + tools + R"(,"messages":[)" + ask + "]}").json();
  const json& message = first["message"];
  EXPECT_EQ(message["content"], "Let me look.") << first;
  EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], (json{{"a", 1}}));
  const HttpAnswer second = post(
      "/api/chat", R"({"stream":false,)" + tools + R"(,"messages":[)" + ask + "," + message.dump() +
                       R"(,{"role":"tool","content":"42","tool_name":"look"}]})");
  EXPECT_EQ(second.status, 200) << second.body;
}

// A schema that allows one answer only, up to white space.
TEST_F(ServedApis, SchemasOfOtherApisAreFollowed) {
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

TEST_F(ServedApis, EmbeddingsOfTextsAndIds) {
  std::string ids;
  for (int i = 0; i < 200; ++i) ids += (i == 0 ? "" : ",") + std::to_string(i);  // four steps
  const json reply =
      post("/v1/embeddings", R"({"input":[[7],[)" + ids + R"(]],"model":"any"})").json();
  ASSERT_EQ(reply["data"].size(), 2u) << reply;
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 201);
  double square = 0;
  for (uint32_t column = 0; column < kStandInWidth; ++column)
    square += std::pow(stand_in_hidden(7, column), 2);
  for (uint32_t column = 0; column < kStandInWidth; ++column)
    EXPECT_NEAR(reply["data"][0]["embedding"][column].get<double>(),
                stand_in_hidden(7, column) / std::sqrt(square), 1e-6);
  EXPECT_EQ(reply["data"][1]["index"], 1);
  const json last =
      post("/v1/embeddings", R"({"input":[1,2,7],"pooling":"last","dimensions":3})").json();
  EXPECT_EQ(last["data"][0]["embedding"].size(), 3u);
  const json text =
      post("/v1/embeddings", R"({"input":"a fox","encoding_format":"base64"})").json();
  EXPECT_EQ(text["data"][0]["embedding"].get<std::string>().size(), 4 * kStandInWidth * 4 / 3);
  const HttpAnswer refused = post("/v1/embeddings", R"({"input":[)" + ids + "," + ids + "]}");
  EXPECT_EQ(refused.json()["error"]["code"], "context_length_exceeded");
}

}  // namespace
}  // namespace hearth::testing
