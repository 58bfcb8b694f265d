// The errors for mistakes that people often make, and fields that clients expect.
#include <nlohmann/json.hpp>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/served_stand_in.h"
#include "tools/server/openai_request.h"

namespace hearth::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string problem_with(const std::string& body) {
  const auto parsed = parse_api_request(ApiKind::kChat, body, {.vocabulary = 1000});
  const ApiError* const error = std::get_if<ApiError>(&parsed);
  return error == nullptr ? std::string() : error->message;
}

TEST(ClientMistakes, AResultNeedsItsCall) {
  const auto messages = [](const std::string& result) {
    return R"({"messages":[{"role":"user","content":"Weather?"},
        {"role":"assistant","tool_calls":[{"id":"c1","type":"function",
         "function":{"name":"f","arguments":"{}"}}]},{"role":"tool",)" +
           result + R"("content":"21"}]})";
  };
  EXPECT_EQ(problem_with(messages(R"("tool_call_id":"c1",)")), "");
  EXPECT_EQ(problem_with(messages("")),
            "'messages[2].tool_call_id' must be the id of the call that it answers");
  EXPECT_EQ(problem_with(messages(R"("tool_call_id":"c2",)")),
            "'messages[2].tool_call_id' is 'c2', which is no call in the messages before it");
}

TEST(ClientMistakes, MessagesSayWhatToDo) {
  const auto fields = [](const std::string& more) {
    return R"({"messages":[{"role":"user","content":"Hi"}],)" + more + "}";
  };
  const std::pair<std::string, std::string> cases[] = {
      {R"("max_tokens":-2)", "'max_tokens' must be at least 1, or -1 for no limit"},
      {R"("max_tokens":"7")", "'max_tokens' must be an integer"},
      {R"("structured_outputs":{"regx":"a"})",
       "'structured_outputs.regx' is not a known field; did you mean regex?"},
      {R"("structured_outputs":{"rgx":"a"})",
       "'structured_outputs.rgx' is not a known field; there are json, json_object, regex, choice, "
       "grammar, disable_any_whitespace"},
      {R"("guided_json":{"type":"object"})",
       "'guided_json' is not supported by this server; use 'structured_outputs.json'"},
      {R"("reasoning_effort":"huge")",
       "'reasoning_effort' must be one of none, minimal, low, medium, high, xhigh"},
  };
  for (const auto& [given, message] : cases) EXPECT_EQ(problem_with(fields(given)), message);
  EXPECT_EQ(problem_with("{\"messages\": [],\n  \"model\" 5}"),
            "the body is not valid JSON: see line 2, column 11");
  EXPECT_EQ(problem_with(R"({"temperature": 1e999})"), "the body is not valid JSON");
}

class ServedMistakes : public ServedStandIn {
 protected:
  std::string message_of(const HttpAnswer& answer, int status) {
    EXPECT_EQ(answer.status, status) << answer.body;
    const json body = answer.json();
    return body["error"].is_string() ? body["error"].get<std::string>()
                                     : body["error"]["message"].get<std::string>();
  }
};

TEST_F(ServedMistakes, AreAnsweredInTheWordsOfTheirApi) {
  EXPECT_THAT(message_of(get("/v1/models/xyz"), 404),
              HasSubstr("there is no model 'xyz'; this server has "));
  EXPECT_EQ(message_of(post("/v1/responses", R"({"input":"Hi","max_tokens":5})"), 400),
            "'max_tokens' is called 'max_output_tokens' here");
  EXPECT_TRUE(get("/api/nothing").json()["error"].is_string());
  EXPECT_EQ(get("/v1/messages/nothing").json()["type"], "error");
  EXPECT_TRUE(get("/nothing").json()["error"].is_object());
  EXPECT_EQ(message_of(post("/v1/chat/completion", "{}"), 404),
            "there is nothing at this address (/docs lists all); did you mean "
            "/v1/chat/completions?");
}

TEST_F(ServedMistakes, ChunksBeforeTheUsageHaveNone) {
  const HttpAnswer answer = post("/v1/completions", R"({"prompt":"Once","max_tokens":3,
      "ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}})");
  size_t chunks = 0, without = 0;
  for (size_t at = answer.body.find("data: {"); at != std::string::npos;
       at = answer.body.find("data: {", at + 1)) {
    const json chunk = json::parse(answer.body.substr(at + 6, answer.body.find('\n', at) - at - 6));
    ++chunks;
    ASSERT_TRUE(chunk.contains("usage")) << chunk;
    without += chunk["usage"].is_null();
  }
  EXPECT_GE(chunks, 3u);
  EXPECT_EQ(without, chunks - 1);
}

}  // namespace
}  // namespace hearth::testing
