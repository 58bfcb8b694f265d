// Small things that clients of other servers expect: -1 for "no limit", and streams that proxies
// neither hold back nor close while their request waits.
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/served_stand_in.h"
#include "tools/server/openai_request.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ClientHabits : public ServedStandIn {
 protected:
  // A server whose first token takes longer than streams may be silent.
  void serve_slowly() {
    serve({.port = 0, .comment_seconds = 0.03});
    engine_->executor().delay = std::chrono::milliseconds(150);
  }
};

constexpr const char* kStreamed =
    R"({"prompt":"a","ignore_eos":true,"temperature":0,"max_tokens":3,"stream":true})";

TEST(ClientHabitsFields, MinusOneMeansNoLimit) {
  for (const char* field : {"max_tokens", "max_completion_tokens"}) {
    const auto read = [&](const char* value) {
      return parse_api_request(
          ApiKind::kCompletion,
          std::string(R"({"prompt":"a","top_k":-1,")") + field + "\":" + value + "}",
          {.vocabulary = 100});
    };
    const auto unlimited = read("-1");
    ASSERT_TRUE(std::holds_alternative<ApiRequest>(unlimited)) << field;
    const GenerationRequest& generation = std::get<ApiRequest>(unlimited).generation;
    EXPECT_EQ(generation.max_tokens, 0u);
    EXPECT_TRUE(generation.generate);
    EXPECT_EQ(generation.sampling.top_k, 0u);
    for (const char* wrong : {"0", "-2"}) {
      const auto refused = read(wrong);
      ASSERT_TRUE(std::holds_alternative<ApiError>(refused)) << field << wrong;
      EXPECT_EQ(std::get<ApiError>(refused).param, field);
    }
  }
}

TEST_F(ClientHabits, ACommentComesWhileNothingElseDoes) {
  serve_slowly();
  const HttpAnswer answer = post("/v1/completions", kStreamed);
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.head, HasSubstr("X-Accel-Buffering: no\r\n"));
  EXPECT_THAT(answer.body, ::testing::StartsWith(": waiting\n\n: waiting\n\n"));
  EXPECT_THAT(answer.body, HasSubstr("data: [DONE]"));
}

TEST_F(ClientHabits, AStreamThatIsNeverSilentHasNoComments) {
  const HttpAnswer answer = post("/v1/completions", kStreamed);
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, Not(HasSubstr(": waiting")));
}

TEST_F(ClientHabits, AnErrorAfterACommentIsAnEvent) {
  serve_slowly();
  // The prompt takes two steps. The first one is slow, and the second one fails.
  engine_->executor().faults.wait.arm(2);
  const nlohmann::json body = {
      {"prompt", std::vector<int>(100, 5)}, {"max_tokens", 3}, {"stream", true}};
  const HttpAnswer answer = post("/v1/completions", body.dump());
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, ::testing::StartsWith(": waiting\n\n"));
  EXPECT_THAT(answer.body, HasSubstr(R"(data: {"error":)"));
}

// Ollama's streams are lines of JSON, where a comment would be a mistake.
TEST_F(ClientHabits, OnlyEventStreamsHaveComments) {
  serve_slowly();
  const HttpAnswer answer = post(
      "/api/generate",
      R"({"model":"m","prompt":"a","stream":true,"options":{"num_predict":2,"temperature":0}})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, Not(HasSubstr(": waiting")));
  EXPECT_THAT(answer.body, ::testing::StartsWith("{"));
}

}  // namespace
}  // namespace hearth::testing
