// Ollama's API: requests and replies alone, then over HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/adapted_apis.h"
#include "tools/server/api/ollama_reply.h"
#include "tools/server/api/ollama_request.h"

namespace hearth::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json ollama(OllamaCall call, const std::string& body) {
  return translated(parse_ollama_request(call, body), &OllamaRequest::body);
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
  // Forced tokens may come at once, and clients divide by durations.
  GenerationEnd forced = kEnd;
  forced.times.first_token = forced.times.last_token = forced.times.admitted;
  const json quick =
      json::parse(OllamaReply(OllamaCall::kChat, "m").whole(kWholeCompletion, forced));
  EXPECT_GT(quick["prompt_eval_duration"], 0);
  EXPECT_GT(quick["eval_duration"], 0);
  const json whole = json::parse(at_once.whole(kWholeCompletion, kEnd));
  EXPECT_EQ(whole["message"]["content"], "Let me look.");
  EXPECT_EQ(whole["message"]["thinking"], "Hmm.");
  EXPECT_EQ(whole["message"]["tool_calls"].size(), 2u);
}

class ServedOllama : public ServedApis {};
class ServedOllamaCalls : public ServedCalls {};

TEST_F(ServedOllama, ChatsAndGenerates) {
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

TEST_F(ServedOllama, ListsTheModel) {
  const json tags = get("/api/tags").json();
  ASSERT_EQ(tags["models"].size(), 1u);
  EXPECT_EQ(tags["models"][0]["name"], "hearth");
  EXPECT_EQ(tags["models"][0]["digest"].get<std::string>().size(), 64u);
  const json running = get("/api/ps").json();
  ASSERT_EQ(running["models"].size(), 1u);
  EXPECT_EQ(running["models"][0]["digest"], tags["models"][0]["digest"]);
  EXPECT_GT(running["models"][0]["context_length"], 0);
  EXPECT_EQ(post("/api/show", R"({"model":"hearth"})").json()["capabilities"][0], "completion");
  EXPECT_TRUE(get("/api/version").json().contains("version"));
}

TEST_F(ServedOllamaCalls, GetTheirResults) {
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

}  // namespace
}  // namespace hearth::testing
