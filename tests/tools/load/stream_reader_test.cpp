// Streams of completions and chats as different servers send them.
#include "tools/load/stream_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string as_event(const std::string& data) { return "data: " + data + "\n\n"; }

TEST(StreamReader, TakesTheTimesOfTextAndTheServersCounts) {
  StreamReader reader;
  StreamedReply reply;
  const auto push = [&](double now, const std::string& data) {
    ASSERT_TRUE(reader.push(as_event(data), now, reply).ok());
  };
  // Neither the role nor an empty text is a token.
  push(1, R"({"choices":[{"delta":{"role":"assistant","content":""}}],"usage":null})");
  push(2, R"({"choices":[{"delta":{"reasoning_content":"hm"}}]})");
  push(3, R"({"choices":[{"delta":{"content":"a b"}}]})");
  push(4, R"({"choices":[{"delta":{"tool_calls":[{"index":0}]}}]})");
  EXPECT_FALSE(reply.complete);
  push(5, R"({"choices":[{"delta":{},"finish_reason":"stop"}]})");
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(reply.tokens(), 3u);  // as long as the server has not counted
  push(6, R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}})");
  push(7, "[DONE]");
  EXPECT_THAT(reply.text_times, ElementsAre(2, 3, 4));
  EXPECT_EQ(reply.prompt_tokens, 7u);
  EXPECT_EQ(reply.generated_tokens, 9u);
  EXPECT_EQ(reply.tokens(), 9u);
  EXPECT_EQ(reply.error, "");
}

TEST(StreamReader, AStreamWithoutAnEndIsNotComplete) {
  StreamReader reader;
  StreamedReply reply;
  ASSERT_TRUE(
      reader.push(": waiting\n\n" + as_event(R"({"choices":[{"text":"a"}]})"), 1, reply).ok());
  EXPECT_EQ(reply.text_times.size(), 1u);
  EXPECT_FALSE(reply.complete);
}

TEST(StreamReader, ReportsErrorsOfTheServer) {
  StreamReader reader;
  StreamedReply reply;
  ASSERT_TRUE(reader.push(as_event(R"({"error":{"message":"lost\nit"}})"), 1, reply).ok());
  EXPECT_EQ(reply.error, "lost it");
  EXPECT_EQ(error_text_of(R"({"error":"no"})"), "no");
  EXPECT_EQ(error_text_of(R"({"error":{"message":"bad field"}})"), "bad field");
  EXPECT_EQ(error_text_of("<html>\n"), "<html> ");
  EXPECT_EQ(error_text_of(std::string(1000, 'x')).size(), 200u);
}

TEST(StreamReader, NonsenseIsAnError) {
  for (const char* data : {"nonsense", "[1]", "3", "{\"a\":"}) {
    StreamReader reader;
    StreamedReply reply;
    const Status status = reader.push(as_event(data), 1, reply);
    ASSERT_FALSE(status.ok()) << data;
    EXPECT_THAT(status.error().message, HasSubstr(data));
  }
  // Objects of another shape are skipped: servers add events of their own.
  for (const char* data : {R"({"choices":3})", R"({"usage":[]})", R"({"choices":[3]})", "{}"}) {
    StreamReader reader;
    StreamedReply reply;
    EXPECT_TRUE(reader.push(as_event(data), 1, reply).ok()) << data;
    EXPECT_TRUE(reply.text_times.empty());
  }
}

}  // namespace
}  // namespace hearth
