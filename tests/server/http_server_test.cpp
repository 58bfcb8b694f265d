// The server without a device: before it has a model, with a stand-in for one, and after losing it.
#include "tools/server/http_server.h"

#include <future>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/exposition.h"
#include "tests/support/served_stand_in.h"

namespace hearth::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCompletion = "/v1/completions";

TEST(HttpServer, SaysThatItLoads) {
  const ScopedLogSink quiet([](std::string_view) {});
  const auto server = HttpServer::create({.port = 0, .api_keys = {"key"}});
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

// Greedy and of fixed length, so that the same prompt always gets the same answer.
std::string completion(const std::string& prompt, const std::string& more = {}) {
  return R"({"temperature":0,"ignore_eos":true,"max_tokens":6,"prompt":)" + prompt + more + "}";
}

TEST_F(ServedStandIn, ALostDeviceFailsEveryRequest) {
  EXPECT_EQ(get("/health").json()["status"], "ok");
  EXPECT_EQ(post(kCompletion, completion("\"a\"")).status, 200);
  engine_->executor().delay = std::chrono::milliseconds(5);
  const std::string endless = R"({"prompt":"a","ignore_eos":true,"max_tokens":200)";
  HttpClient streaming(server_->port()), waiting(server_->port());
  streaming.send(HttpClient::post_text(kCompletion, endless + R"(,"stream":true})"));
  ASSERT_TRUE(streaming.read_until("data: "));
  waiting.send(HttpClient::post_text(kCompletion, endless + "}"));
  ASSERT_TRUE(comes_true([&] { return (*engine_)->metrics().running.value() == 2; }));

  engine_->executor().faults.wait.arm(1);
  // A whole reply gets a status, a stream that has begun an event.
  HttpAnswer answer = waiting.read();
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.json()["error"]["type"], "server_error");
  const std::string reason = answer.json()["error"]["message"];
  EXPECT_THAT(reason, HasSubstr("stand-in"));
  answer = streaming.read();
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr(R"(data: {"error":)"));
  EXPECT_THAT(answer.body, HasSubstr(reason));

  answer = get("/health");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.json()["status"], "error");
  EXPECT_EQ(answer.json()["message"], reason);
  for (const char* path : {kCompletion, "/v1/chat/completions"}) {
    answer = post(path, R"({"prompt":"a","messages":[{"role":"user","content":"a"}]})");
    EXPECT_EQ(answer.status, 503) << path;
    EXPECT_EQ(answer.json()["error"]["code"], "error") << path;
  }
  // Metrics can still be read, so that somebody can find out why.
  answer = get("/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr("hearth_requests_finished_total{reason=\"error\"} 2\n"));
  EXPECT_EQ(get("/v1/models").status, 200);
  server_->drain();
}

TEST_F(ServedStandIn, ConnectionsCloseWhileItDrains) {
  engine_->executor().delay = std::chrono::milliseconds(20);
  HttpClient running(server_->port()), kept(server_->port());
  running.send(HttpClient::post_text(
      kCompletion, R"({"prompt":"a","ignore_eos":true,"max_tokens":100,"stream":true})"));
  ASSERT_TRUE(running.read_until("data: "));
  const HttpAnswer before = kept.get("/health");
  EXPECT_EQ(before.json()["status"], "ok");
  EXPECT_THAT(before.head, Not(HasSubstr("Connection: close")));
  std::thread draining([&] { server_->drain(); });
  ASSERT_TRUE(comes_true([&] { return (*engine_)->state() == EngineState::kDraining; }));
  // The reply closes the connection; otherwise a busy client would keep it to the very end.
  const HttpAnswer after = kept.get("/health");
  EXPECT_EQ(after.json()["status"], "draining");
  EXPECT_THAT(after.head, HasSubstr("Connection: close"));
  EXPECT_TRUE(kept.closed(0.5));
  EXPECT_THAT(running.read().body, HasSubstr("data: [DONE]"));
  draining.join();
}

// The engine is paused, so that only the server can end what its clients wait for.
TEST_F(ServedStandIn, IsDestroyedUnderItsClientsWithoutADrain) {
  engine_->executor().delay = std::chrono::milliseconds(20);
  const int port = server_->port();
  const std::string endless = R"({"prompt":"a","ignore_eos":true,"max_tokens":200)";
  HttpClient watching(port), streaming(port), waiting(port), queued(port);
  watching.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(watching.read_until("event: "));
  streaming.send(HttpClient::post_text(kCompletion, endless + R"(,"stream":true})"));
  ASSERT_TRUE(streaming.read_until("data: "));
  waiting.send(HttpClient::post_text(kCompletion, endless + "}"));
  ASSERT_TRUE(comes_true([&] { return (*engine_)->metrics().running.value() == 2; }));
  (*engine_)->pause();
  queued.send(HttpClient::post_text(kCompletion, endless + R"(,"stream":true})"));
  ASSERT_TRUE(comes_true([&] { return (*engine_)->metrics().requests_submitted.value() == 3; }));

  auto gone = std::async(std::launch::async, [this] { server_.reset(); });
  const bool in_time = gone.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  EXPECT_TRUE(in_time) << "the server waits for its clients";
  if (!in_time) {  // they leave, so that it can go
    for (HttpClient* client : {&watching, &streaming, &waiting, &queued}) client->finish_sending();
    return gone.wait();
  }
  EXPECT_TRUE(watching.read().body.ends_with("\n\n"));
  const HttpAnswer cut_off = streaming.read();
  EXPECT_EQ(cut_off.status, 200);
  EXPECT_THAT(cut_off.body, HasSubstr(R"(data: {"error":)"));
  EXPECT_THAT(cut_off.body, Not(HasSubstr("[DONE]")));
  for (HttpClient* client : {&waiting, &queued}) {
    const HttpAnswer refused = client->read();
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.json()["error"]["code"], "draining");
  }
  for (HttpClient* client : {&watching, &streaming, &waiting, &queued})
    EXPECT_TRUE(client->closed(1));
  (*engine_)->resume();
  EXPECT_TRUE(comes_true([&] { return (*engine_)->metrics().running.value() == 0; }));
}

TEST_F(ServedStandIn, TheModelIsFoundByItsName) {
  const std::string name = get("/v1/models").json()["data"][0]["id"];
  EXPECT_EQ(get("/v1/models/" + name).json()["id"], name);
  EXPECT_EQ(get("/v1/models/%" + fmt::format("{:02x}", name.front()) + name.substr(1)).status, 200);
  for (const std::string& longer : {"folder/" + name, name + "/", name + "%", std::string()})
    EXPECT_EQ(get("/v1/models/" + longer).status, 404) << longer;
  const HttpAnswer other = get("/v1/models/another");
  EXPECT_EQ(other.status, 404);
  EXPECT_EQ(other.json()["error"]["code"], "model_not_found");
}

TEST_F(ServedStandIn, MetricsFollowThePrometheusFormat) {
  EXPECT_EQ(post(kCompletion, completion("\"a\"", R"(,"n":3)")).status, 200);
  const Exposition scrape = ExpositionReader::read(get("/metrics").body);
  // But for the colon in vLLM's names.
  EXPECT_THAT(scrape.complaints, ::testing::Each(::testing::StartsWith("colon or capital: vllm:")));
  EXPECT_GE(scrape.types.size(), 20u);
}

TEST_F(ServedStandIn, TheModelTellsItsDefaultsAndTheContextThatFits) {
  const json model = get("/v1/models").json()["data"][0];
  EXPECT_EQ(model["max_model_len"], 256);
  EXPECT_EQ(model["sampling"]["temperature"], 0.7);
  EXPECT_EQ(model["sampling"]["min_p"], 0.05);
}

// The page once showed no request beside 16 used KV blocks: steps tell the counts they began with.
TEST_F(ServedStandIn, AfterTheLastStepEventsTellThatNoBlockIsUsed) {
  HttpClient watching(server_->port());
  watching.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(watching.read_until("event: hello"));
  EXPECT_EQ(post(kCompletion, completion("\"Once upon a time there was a fox in a wood\"")).status,
            200);
  ASSERT_TRUE(watching.read_until("\"members\""));
  const std::string name = "event: counts\ndata: ";
  json counts;
  EXPECT_TRUE(comes_true([&] {
    watching.read_until("more", 0.05);
    const std::string& text = watching.received();
    const size_t place = text.rfind(name), step = text.rfind("\"members\"");
    if (place == std::string::npos || place < step) return false;
    const size_t begin = place + name.size();
    counts = json::parse(text.substr(begin, text.find('\n', begin) - begin), nullptr, false);
    return counts.is_object() && counts["requests"]["running"] == 0;
  }));
  EXPECT_EQ(counts["blocks"]["used"], 0);
  EXPECT_GT(counts["blocks"]["cached"], 0);
  EXPECT_EQ(counts["blocks"]["cached"], (*engine_)->metrics().kv_blocks_cached.value());
}

TEST_F(ServedStandIn, UnsupportedFieldsAreRefusedByName) {
  const HttpAnswer answer = post("/v1/chat/completions",
                                 R"({"messages":[{"role":"user","content":"a"}],
                                     "audio":{"voice":"alloy"}})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.json()["error"]["param"], "audio");
  EXPECT_EQ(answer.json()["error"]["type"], "invalid_request_error");
  EXPECT_EQ((*engine_)->metrics().requests_submitted.value(), 0u);
}

TEST_F(ServedStandIn, AForeignHostOrOriginIsRefused) {
  const auto ask = [&](const std::string& host, const std::string& headers) {
    HttpClient client(server_->port());
    client.send("GET /v1/models HTTP/1.1\r\nHost: " + host + "\r\n" + headers + "\r\n");
    return client.read();
  };
  EXPECT_EQ(ask("localhost", "").status, 200);
  const HttpAnswer rebound = ask("evil.example", "");
  EXPECT_EQ(rebound.status, 403);
  EXPECT_THAT(rebound.json()["error"]["message"].get<std::string>(),
              HasSubstr("--allow-host evil.example"));
  EXPECT_EQ(ask("localhost", "Origin: http://evil.example\r\n").status, 403);
  EXPECT_EQ(ask("localhost", "Origin: http://localhost\r\n").status, 200);

  HttpClient form(server_->port());
  form.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
      "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_EQ(form.read().status, 415);

  serve({.port = 0, .allowed_hosts = {"box"}, .cors_origin = "http://page"});
  EXPECT_EQ(ask("box:8080", "").status, 200);
  EXPECT_EQ(ask("evil.example", "").status, 403);
  EXPECT_EQ(ask("localhost", "Origin: http://page\r\n").status, 200);
  EXPECT_EQ(ask("localhost", "Origin: http://evil.example\r\n").status, 403);
  // A page that does not know the key can do nothing, under whatever name.
  serve({.port = 0, .api_keys = {"key"}});
  EXPECT_EQ(ask("evil.example", "Authorization: Bearer key\r\n").status, 200);
  EXPECT_EQ(ask("evil.example", "").status, 401);
}

TEST_F(ServedStandIn, TheKeyIsCheckedBeforeTheBodyIsRead) {
  serve({.port = 0, .api_keys = {"one", "two"}});
  HttpClient stranger(server_->port());
  stranger.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer three\r\n"
      "Content-Length: 8000000\r\n\r\n");
  EXPECT_EQ(stranger.read(5).status, 401) << "without a byte of the body";
  EXPECT_TRUE(stranger.closed(5));
  for (const char* key : {"one", "two"})
    EXPECT_EQ(HttpClient(server_->port())
                  .post(kCompletion, completion("\"a\""),
                        "Authorization: Bearer " + std::string(key) + "\r\n")
                  .status,
              200);
}

TEST_F(ServedStandIn, BodiesBeyondTheirMemoryGet503AndTryAgain) {
  serve({.port = 0, .bodies_bytes = 4 << 20});
  const std::string large = R"({"prompt":")" + std::string(2 << 20, 'a') + "\"}";
  const HttpAnswer refused = post(kCompletion, large);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.json()["error"]["code"], "overloaded");
  EXPECT_THAT(refused.head, HasSubstr("Retry-After: "));
  EXPECT_EQ(post(kCompletion, completion("\"a\"")).status, 200);
  // What a long answer was asked with is not held while it runs.
  engine_->executor().delay = std::chrono::milliseconds(5);
  const std::string padding(300000, ' ');
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server_->port()));
    clients.back()->send(HttpClient::post_text(
        kCompletion,
        R"({"prompt":"a","ignore_eos":true,"max_tokens":200,"stream":true)" + padding + "}"));
    ASSERT_TRUE(clients.back()->read_until("data: ")) << i;
  }
  EXPECT_EQ((*engine_)->metrics().running.value(), 8u);
}

// Eight streams of 200 tokens with their logprobs are several hundred kilobytes.
constexpr const char* kLargeStream =
    R"({"prompt":"a","ignore_eos":true,"max_tokens":200,"n":8,"logprobs":20,"stream":true})";

TEST_F(ServedStandIn, AClientThatNeverReadsIsCancelled) {
  serve({.port = 0, .backlog_bytes = 10000});
  // It would take 8 seconds to the end; the sockets are full before.
  engine_->executor().delay = std::chrono::milliseconds(40);
  HttpClient client(server_->port());
  client.set_receive_buffer(4096);
  client.send(HttpClient::post_text(kCompletion, kLargeStream));
  EXPECT_TRUE(comes_true([&] { return (*engine_)->metrics().finished_cancelled.value() == 8; }));
  EXPECT_TRUE(comes_true([&] { return (*engine_)->metrics().kv_blocks_used.value() == 0; }));
}

TEST_F(ServedStandIn, DrainingEndsInTimeWhateverClientsDo) {
  serve({.port = 0, .backlog_bytes = 10 << 20});
  engine_->executor().delay = std::chrono::milliseconds(50);
  const std::string endless = R"({"prompt":"a","ignore_eos":true,"max_tokens":250)";
  HttpClient unread(server_->port()), reading(server_->port()), waiting(server_->port());
  unread.set_receive_buffer(4096);
  unread.send(HttpClient::post_text(kCompletion, kLargeStream));
  reading.send(HttpClient::post_text(kCompletion, endless + R"(,"stream":true})"));
  waiting.send(HttpClient::post_text(kCompletion, endless + "}"));
  ASSERT_TRUE(comes_true([&] { return (*engine_)->metrics().requests_submitted.value() == 10; }));
  const auto began = std::chrono::steady_clock::now();
  server_->drain(1);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  EXPECT_GT(took.count(), 0.5) << "open requests have time to end";
  EXPECT_LT(took.count(), 5);
  EXPECT_THAT(reading.read().body, HasSubstr("the server has shut down"));
  EXPECT_EQ(waiting.read().status, 503);
  EXPECT_EQ((*engine_)->metrics().running.value(), 0u);
}

}  // namespace
}  // namespace hearth::testing
