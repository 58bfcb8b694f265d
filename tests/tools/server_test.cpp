// hearth serve as clients see it: the real program on the smallest model, over sockets.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <sstream>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "tests/support/hearth_program.h"
#include "tests/support/malformed_request.h"
#include "tests/support/sanitizers.h"
#include "tests/support/serving.h"

namespace hearth::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

constexpr const char* kServedModel = Serving::kSmallestModel;
constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kCompletion = "/v1/completions";
// Hundreds of tokens, longer than a test needs.
const std::string kLongStream =
    R"({"prompt":"Once","max_tokens":900,"ignore_eos":true,"stream":true})";

// The objects of a stream, without its final [DONE].
std::vector<json> events(const std::string& body) {
  std::vector<json> result;
  std::istringstream lines(body);
  std::string line;
  bool done = false;
  while (std::getline(lines, line)) {
    if (line == "data: [DONE]") {
      done = true;
    } else if (!line.empty()) {
      EXPECT_FALSE(done) << line;
      EXPECT_TRUE(line.starts_with("data: ")) << line;
      result.push_back(json::parse(line.substr(6), nullptr, false));
    }
  }
  EXPECT_TRUE(done) << body;
  return result;
}

class Server : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<Serving>(); }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override { ASSERT_NE(server_->port(), 0) << server_->log(); }

  static inline std::unique_ptr<Serving> server_;
};

TEST_F(Server, SmallEndpoints) {
  EXPECT_EQ(server_->get("/health").json()["status"], "ok");
  EXPECT_EQ(server_->get("/v1/models").json()["data"][0]["id"], "hearth-tiny-Q8_0");
  EXPECT_THAT(server_->get("/").body, HasSubstr("<html"));
  EXPECT_THAT(server_->get("/docs").body, HasSubstr("hearth serve"));
  const HttpAnswer metrics = server_->get("/metrics");
  EXPECT_THAT(metrics.head, HasSubstr("text/plain; version=0.0.4"));
  EXPECT_THAT(metrics.body, HasSubstr("hearth_step_seconds_bucket{le=\"+Inf\"}"));
  const json tokens = server_->post("/tokenize", R"({"content":"Once upon a time"})").json();
  ASSERT_GT(tokens["tokens"].size(), 1u);
  EXPECT_EQ(server_->post("/detokenize", tokens.dump()).json()["content"], "Once upon a time");
  EXPECT_EQ(server_->get("/nothing").status, 404);
  EXPECT_EQ(server_->get("/../../etc/passwd").status, 404);
  EXPECT_EQ(server_->get(kChat).status, 405);
  EXPECT_THAT(server_->get("/health").head, Not(HasSubstr("Access-Control")));
  HttpClient head(server_->port());
  head.send("HEAD /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(head.closed());
  EXPECT_THAT(head.received(), HasSubstr("HTTP/1.1 200 OK"));
  EXPECT_TRUE(head.received().ends_with("\r\n\r\n"));
}

TEST_F(Server, CompletionsWholeAndStreamedAreTheSame) {
  const std::string fields = R"("prompt":"Once upon a time","max_tokens":20,"temperature":0)";
  const HttpAnswer whole = server_->post(kCompletion, "{" + fields + "}");
  ASSERT_EQ(whole.status, 200) << whole.body;
  const json reply = whole.json();
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(reply["usage"]["completion_tokens"], 20);
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 5);
  const HttpAnswer streamed = server_->post(
      kCompletion, "{" + fields + R"(,"stream":true,"stream_options":{"include_usage":true}})");
  EXPECT_THAT(streamed.head, HasSubstr("text/event-stream"));
  std::string text;
  json usage;
  for (const json& event : events(streamed.body)) {
    EXPECT_EQ(event["object"], "text_completion");
    for (const json& choice : event["choices"]) text += choice["text"].get<std::string>();
    if (event.contains("usage")) usage = event["usage"];
  }
  EXPECT_EQ(reply["choices"][0]["text"].get<std::string>(), text);
  EXPECT_EQ(usage["completion_tokens"], 20);
}

TEST_F(Server, ChatStreamsHaveARoleAndAnEndForEveryChoice) {
  const HttpAnswer answer = server_->post(
      kChat,
      R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":5,"n":3,"stream":true,"seed":1})");
  std::map<int, int> roles, ends;
  for (const json& event : events(answer.body)) {
    const json& choice = event["choices"][0];
    roles[choice["index"]] += choice["delta"].contains("role");
    ends[choice["index"]] += !choice["finish_reason"].is_null();
  }
  EXPECT_EQ(roles, (std::map<int, int>{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(ends, roles);
}

TEST_F(Server, ASeedDecidesAndLogprobsAreThere) {
  const auto ask = [&](int seed) {
    return server_
        ->post(kChat, R"({"messages":[{"role":"user","content":"Tell me a story."}],"max_tokens":16,
            "logprobs":true,"top_logprobs":3,"seed":)" +
                          std::to_string(seed) + "}")
        .json()["choices"][0];
  };
  const json first = ask(7), second = ask(7), other = ask(8);
  EXPECT_EQ(first["message"], second["message"]);
  EXPECT_NE(first["message"], other["message"]);
  ASSERT_EQ(first["logprobs"]["content"].size(), 16u);
  std::string text;
  for (const json& token : first["logprobs"]["content"]) {
    EXPECT_LE(token["logprob"].get<double>(), 0);
    EXPECT_EQ(token["top_logprobs"].size(), 3u);
    text += token["token"].get<std::string>();
  }
  EXPECT_EQ(first["message"]["content"].get<std::string>(), text);
}

TEST_F(Server, AStopStringMaySpanTokens) {
  const std::string fields = R"("prompt":"Once upon a time","max_tokens":30,"temperature":0)";
  const json plain = server_->post(kCompletion, "{" + fields + "}").json();
  const std::string text = plain["choices"][0]["text"];
  // From the middle of one word to the middle of the word after the next.
  const size_t space = text.find(' ', 5);
  const std::string stop = text.substr(space - 2, 8);
  const std::string body = "{" + fields + R"(,"stop":["never said",)" + json(stop).dump() + "]";
  const json stopped = server_->post(kCompletion, body + "}").json();
  EXPECT_EQ(stopped["choices"][0]["text"].get<std::string>(), text.substr(0, text.find(stop)));
  EXPECT_EQ(stopped["choices"][0]["finish_reason"], "stop");
  std::string streamed;
  for (const json& event : events(server_->post(kCompletion, body + R"(,"stream":true})").body))
    streamed += event["choices"][0]["text"].get<std::string>();
  EXPECT_EQ(stopped["choices"][0]["text"].get<std::string>(), streamed);
}

TEST_F(Server, APromptIsCachedForTheNextTime) {
  std::string prompt;
  for (int i = 0; i < 40; ++i) prompt += "word" + std::to_string(i) + " ";
  const std::string body = R"({"prompt":")" + prompt + R"(","max_tokens":2})";
  const auto cached = [&] {
    return server_->post(kCompletion, body)
        .json()["usage"]["prompt_tokens_details"]["cached_tokens"]
        .get<int>();
  };
  EXPECT_EQ(cached(), 0);
  EXPECT_GT(cached(), 30);
}

TEST_F(Server, RefusalsSayWhichField) {
  const HttpAnswer wrong = server_->post(kCompletion, R"({"prompt":"a","n":"many"})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(wrong.json()["error"]["param"], "n");
  // Longer than the context.
  const HttpAnswer long_prompt =
      server_->post(kCompletion, R"({"prompt":")" + std::string(20000, 'x') + R"("})");
  EXPECT_EQ(long_prompt.status, 400) << long_prompt.body;
  EXPECT_EQ(server_->post(kCompletion, std::string(9 << 20, ' ')).status, 413);
}

TEST_F(Server, AClientThatLeavesIsCancelled) {
  const uint64_t before = server_->metric("hearth_requests_finished_total{reason=\"cancelled\"}");
  {
    HttpClient streaming(server_->port()), waiting(server_->port());
    streaming.send(HttpClient::post_text(kCompletion, kLongStream));
    waiting.send(HttpClient::post_text(kCompletion,
                                       R"({"prompt":"Once","max_tokens":900,"ignore_eos":true})"));
    ASSERT_TRUE(streaming.read_until("data: "));
    EXPECT_EQ(server_->wait_for("hearth_requests_running", 2), 2u);
  }
  EXPECT_EQ(server_->wait_for("hearth_requests_finished_total{reason=\"cancelled\"}", before + 2),
            before + 2);
  EXPECT_EQ(server_->wait_for("hearth_requests_running", 0), 0u);
  EXPECT_EQ(server_->wait_for("hearth_kv_blocks_used", 0), 0u);
}

TEST_F(Server, EventsTellOfEveryStep) {
  HttpClient client(server_->port());
  client.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(client.read_until(": steps"));
  EXPECT_EQ(
      server_->post(kCompletion, R"({"prompt":"Once","max_tokens":3,"ignore_eos":true})").status,
      200);
  // The last step of an earlier request may come first.
  ASSERT_TRUE(client.read_until("\"phase\":\"prompt\""));
  ASSERT_TRUE(client.read_until("\"phase\":\"decode\""));
  EXPECT_THAT(client.received(), HasSubstr("\"run_seconds\":"));
}

TEST_F(Server, TheLogHasOneLinePerRequestAndNoPrompt) {
  EXPECT_EQ(server_->post(kCompletion, R"({"prompt":"SECRETWORD","max_tokens":1})").status, 200);
  EXPECT_EQ(server_->get("/health?q=SECRETWORD").status, 200);
  const std::string log = server_->log();
  EXPECT_THAT(log, HasSubstr("127.0.0.1 POST /v1/completions 200"));
  EXPECT_THAT(log, Not(HasSubstr("SECRETWORD")));
}

TEST_F(Server, FiveThousandMalformedRequestsHarmNobody) {
  const std::string normal = R"({"prompt":"Once upon a time","max_tokens":60,"temperature":0})";
  const std::string expected = server_->post(kCompletion, normal).json()["choices"][0]["text"];
  std::mt19937 random(7);
  const auto send_some = [&](int count) {
    int answered = 0;
    for (int i = 0; i < count; ++i) {
      HttpClient client(server_->port());
      client.send(malformed_request(random));
      client.finish_sending();
      const HttpAnswer answer = client.read();
      // A refusal, or a close without one; never a success.
      if (answer.status != 0) {
        EXPECT_GE(answer.status, 400) << answer.body;
        EXPECT_LT(answer.status, 506) << answer.body;
        EXPECT_NE(answer.status, 500) << answer.body;
        ++answered;
      }
    }
    return answered;
  };
  send_some(500);  // allocates what is allocated only once
  const uint64_t before = server_->resident_bytes();
  std::atomic<bool> done = false;
  int unharmed = 0;
  std::thread normal_client([&] {
    while (!done)
      unharmed += server_->post(kCompletion, normal).json()["choices"][0]["text"] == expected;
  });
  // Meanwhile some send a little and then nothing.
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(std::make_unique<HttpClient>(server_->port()));
    slow.back()->send("POST / HT");
  }
  EXPECT_GT(send_some(5000), 4000);
  done = true;
  normal_client.join();
  EXPECT_GT(unharmed, 1);
  const uint64_t after = server_->resident_bytes();
  if (!kSanitized) {  // a sanitizer keeps what was freed
    EXPECT_LT(after, before + (16 << 20)) << "from " << before << " to " << after;
  }
  EXPECT_EQ(server_->wait_for("hearth_requests_running", 0), 0u);
  EXPECT_EQ(server_->get("/health").json()["status"], "ok");
}

TEST_F(Server, AnnouncesWhatItServesAndWhere) {
  const std::string log = server_->log(), port = std::to_string(server_->port());
  EXPECT_THAT(log, HasSubstr("hearth-tiny-Q8_0 on "));
  EXPECT_THAT(log, HasSubstr("up to 64 sequences at a time, 1024 tokens each"));
  EXPECT_THAT(log, HasSubstr("listening on http://127.0.0.1:" + port));
  EXPECT_THAT(log, HasSubstr("chat page at http://127.0.0.1:" + port + "/"));
}

TEST(ServerWithAName, TellsIt) {
  Serving server({"--name", "hearth"});
  ASSERT_NE(server.port(), 0) << server.log();
  EXPECT_EQ(server.get("/v1/models").json()["data"][0]["id"], "hearth");
}

TEST(ServerWithAKey, AdmitsClientsThatHaveIt) {
  Serving server({"--api-key", "open sesame", "--cors", "http://page"});
  ASSERT_NE(server.port(), 0) << server.log();
  for (const char* path : {"/v1/models", "/metrics", "/events", "/nothing"})
    EXPECT_EQ(server.get(path).status, 401) << path;
  EXPECT_EQ(server.get("/v1/models").json()["error"]["code"], "invalid_api_key");
  EXPECT_EQ(server.get("/v1/models", "Authorization: Bearer wrong\r\n").status, 401);
  EXPECT_EQ(server.get("/v1/models", "Authorization: Bearer open sesame\r\n").status, 200);
  EXPECT_EQ(server.get("/health").status, 200);
  EXPECT_EQ(server.get("/").status, 200);
  HttpClient asking(server.port());
  asking.send("OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\nOrigin: http://page\r\n\r\n");
  const HttpAnswer allowed = asking.read();
  EXPECT_EQ(allowed.status, 204);
  EXPECT_THAT(allowed.head, HasSubstr("Access-Control-Allow-Origin: http://page"));
}

TEST(ServerWithAKey, TakesKeysFromAFileAndTheEnvironment) {
  const std::string file = ::testing::TempDir() + "/server_test.keys." + std::to_string(getpid());
  std::ofstream(file) << "# two of them\nfirst\nsecond\n";
  setenv("HEARTH_API_KEY", "third", 1);
  Serving server({"--api-key-file", file, "--api-key", "fourth"});
  setenv("HEARTH_API_KEY", "", 1);
  const Finished empty = hearth({"serve", "-m", kServedModel, "--port", "0"});
  unsetenv("HEARTH_API_KEY");
  std::remove(file.c_str());
  ASSERT_NE(server.port(), 0) << server.log();
  for (const char* key : {"first", "second", "third", "fourth"})
    EXPECT_EQ(server.get("/v1/models", "Authorization: Bearer " + std::string(key) + "\r\n").status,
              200)
        << key;
  EXPECT_EQ(server.get("/v1/models", "Authorization: Bearer fifth\r\n").status, 401);
  EXPECT_EQ(server.get("/v1/models").status, 401);
  EXPECT_THAT(server.log(), Not(HasSubstr("fourth")));
  EXPECT_NE(empty.exit_code, 0);
  EXPECT_THAT(empty.err, HasSubstr("HEARTH_API_KEY"));
}

// 100 connections without the key, each with 8 MB to send, once took 920 MB; a body of nested lists
// became 300 MB.
TEST(ServerMemory, StaysBoundedAndReturnsToWhereItWas) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps what was freed";
  const auto flood = [](Serving& server, const std::string& body, int connections) {
    std::atomic<uint64_t> peak = 0;
    std::atomic<bool> done = false;
    std::thread watch([&] {
      while (!done) {
        peak = std::max<uint64_t>(peak, server.resident_bytes());
        std::this_thread::sleep_for(2ms);
      }
    });
    std::vector<std::thread> clients;
    for (int i = 0; i < connections; ++i)
      clients.emplace_back([&] {
        const HttpAnswer answer = server.post(kCompletion, body);
        EXPECT_NE(answer.status, 200);
        EXPECT_NE(answer.status, 500);
      });
    for (std::thread& client : clients) client.join();
    done = true;
    watch.join();
    return peak.load();
  };
  // Waits until freed pages are back with the system.
  const auto settled = [](const Serving& server, uint64_t limit) {
    for (int i = 0; i < 200 && server.resident_bytes() > limit; ++i)
      std::this_thread::sleep_for(100ms);
    return server.resident_bytes();
  };
  constexpr size_t kBodyBytes = (8 << 20) - 100;
  std::string lists = R"({"prompt":[[])", words = R"({"prompt":")";
  while (lists.size() < kBodyBytes) lists += ",[]";
  while (words.size() < kBodyBytes) words += "word ";
  lists += "]}";
  words += "\"}";
  {
    Serving server({"--api-key", "secret"});
    ASSERT_NE(server.port(), 0) << server.log();
    const uint64_t before = server.resident_bytes();
    EXPECT_LT(flood(server, words, 100), before + (100 << 20)) << before;
  }
  Serving server({"--body-memory", "64MB"});
  ASSERT_NE(server.port(), 0) << server.log();
  const uint64_t before = server.resident_bytes();
  EXPECT_LT(flood(server, lists, 1), before + (32 << 20)) << before;
  EXPECT_LT(flood(server, words, 100), before + (200 << 20)) << before;
  EXPECT_LT(settled(server, before + before / 5), before + before / 5) << before;
  EXPECT_EQ(server.get("/health").json()["status"], "ok");
}

TEST(ServerWithoutAKey, RefusesForeignNames) {
  Serving server({"--allow-host", "chat.example"});
  ASSERT_NE(server.port(), 0) << server.log();
  const auto status = [&](const std::string& host) {
    HttpClient client(server.port());
    client.send("GET /v1/models HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return client.read().status;
  };
  EXPECT_EQ(status("localhost:8080"), 200);
  EXPECT_EQ(status("chat.example"), 200);
  EXPECT_EQ(status("evil.example"), 403);
  EXPECT_EQ(server.get("/v1/models", "Origin: http://evil.example\r\n").status, 403);
}

TEST(ServerThatIsFull, SaysWhenToComeBack) {
  Serving server({"--max-seqs", "1", "--max-queue", "1"});
  ASSERT_NE(server.port(), 0) << server.log();
  HttpClient running(server.port()), waiting(server.port());
  running.send(HttpClient::post_text(kCompletion, kLongStream));
  ASSERT_TRUE(running.read_until("data: "));
  waiting.send(HttpClient::post_text(kCompletion, kLongStream));
  ASSERT_EQ(server.wait_for("hearth_requests_waiting", 1), 1u);
  const HttpAnswer refused = server.post(kCompletion, kLongStream);
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.head, HasSubstr("Retry-After: 1\r\n"));
}

TEST(ServerThatEnds, FinishesRequestsInFlightAndExitsWithZero) {
  Serving server;
  ASSERT_NE(server.port(), 0) << server.log();
  HttpClient idle(server.port()), running(server.port()), events_client(server.port());
  EXPECT_EQ(idle.get("/health").status, 200);
  events_client.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(events_client.read_until(": steps"));
  running.send(HttpClient::post_text(kCompletion, kLongStream));
  ASSERT_TRUE(running.read_until("data: "));
  server.signal(SIGTERM);
  HttpAnswer health;
  for (int i = 0; i < 500 && health.status != 503; ++i) health = server.get("/health");
  EXPECT_EQ(health.json()["status"], "draining");
  EXPECT_EQ(server.post(kCompletion, R"({"prompt":"a"})").status, 503);
  const std::vector<json> all = events(running.read().body);
  EXPECT_EQ(all.back()["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(server.wait(), 0) << server.log();
}

TEST(ServerThatEnds, DoesSoWithinTheDrainTime) {
  Serving server({"--drain-time", "1"});
  ASSERT_NE(server.port(), 0) << server.log();
  // More than the sockets hold: nobody reads it.
  std::vector<std::unique_ptr<HttpClient>> unread;
  for (int i = 0; i < 4; ++i) {
    unread.push_back(std::make_unique<HttpClient>(server.port()));
    unread.back()->set_receive_buffer(4096);
    unread.back()->send(HttpClient::post_text(
        kCompletion,
        R"({"prompt":"Once","max_tokens":900,"ignore_eos":true,"stream":true,"n":16,"logprobs":5})"));
  }
  EXPECT_EQ(server.wait_for("hearth_requests_running", 64), 64u);
  const auto began = std::chrono::steady_clock::now();
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server.log();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);  // with all else that runs here
}

TEST(ServerThatEnds, ASecondSignalEndsItAtOnce) {
  Serving server;
  ASSERT_NE(server.port(), 0) << server.log();
  HttpClient running(server.port());
  running.send(HttpClient::post_text(kCompletion, kLongStream));
  ASSERT_TRUE(running.read_until("data: "));
  server.signal(SIGTERM);
  while (server.log().find("finishing") == std::string::npos) std::this_thread::sleep_for(1ms);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 1);
}

TEST(ServerThatEnds, APortInUseIsOneLine) {
  Serving server;
  ASSERT_NE(server.port(), 0) << server.log();
  const Finished second =
      hearth({"serve", "-m", kServedModel, "--port", std::to_string(server.port())});
  EXPECT_EQ(second.exit_code, 1);
  expect_one_line(second.err);
  // Killed and started again, it gets its port back at once.
  const int port = server.port();
  HttpClient open_connection(port);
  EXPECT_EQ(open_connection.get("/health").status, 200);
  server.signal(SIGKILL);
  server.wait();
  Serving again({"--port", std::to_string(port)});
  EXPECT_EQ(again.port(), port);
  EXPECT_EQ(again.get("/health").status, 200);
}

}  // namespace
}  // namespace hearth::testing
