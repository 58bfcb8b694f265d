// The server before it has a model: it says so, and can be left.
#include "tools/server/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/log.h"
#include "tests/support/http_client.h"

namespace hearth::testing {
namespace {

TEST(HttpServer, SaysThatItLoads) {
  const ScopedLogSink quiet([](std::string_view) {});
  const auto server = HttpServer::create({.port = 0, .api_key = "key"});
  ASSERT_TRUE(server.ok()) << server.error().message;
  const int port = (*server)->port();
  const std::string key = "Authorization: Bearer key\r\n";
  HttpAnswer answer = HttpClient(port).get("/health");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.json()["status"], "loading");
  EXPECT_EQ(HttpClient(port).get("/").status, 200);
  for (const char* path : {"/v1/models", "/metrics", "/events"}) {
    EXPECT_EQ(HttpClient(port).get(path).status, 401) << path;
    answer = HttpClient(port).get(path, key);
    EXPECT_EQ(answer.status, 503) << path;
    EXPECT_EQ(answer.json()["error"]["code"], "loading") << path;
  }
  for (const char* path : {"/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"})
    EXPECT_EQ(HttpClient(port).post(path, "{}", key).status, 503) << path;

  (*server)->fail("no room for it");
  answer = HttpClient(port).get("/health");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.json()["status"], "error");
  EXPECT_EQ(answer.json()["message"], "no room for it");

  (*server)->drain();
  EXPECT_FALSE(HttpClient(port).connected());
}

}  // namespace
}  // namespace hearth::testing
