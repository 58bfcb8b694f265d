// The server without a device: before it has a model, with a stand-in for one, and after losing it.
#include "tools/server/http_server.h"

#include <future>
#include <sstream>
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

class ServedPrompts : public ServedStandIn {
 protected:
  // The texts of a reply, by index. Every index must occur exactly once.
  static std::vector<std::string> texts(const json& choices) {
    std::vector<std::string> all(choices.size());
    std::vector<bool> seen(choices.size());
    for (const json& choice : choices) {
      const auto index = choice["index"].get<size_t>();
      if (index >= all.size() || seen[index]) {
        ADD_FAILURE() << choices;
        return {};
      }
      seen[index] = true;
      EXPECT_EQ(choice["finish_reason"], "length");
      all[index] = choice["text"];
    }
    return all;
  }
  // A stream, put together as the choices of a whole reply; `usage` is its last object's.
  static json assembled(const std::string& body, json& usage) {
    json choices = json::array();
    std::istringstream lines(body);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("data: {")) continue;
      const json chunk = json::parse(line.substr(6));
      if (chunk.contains("usage")) usage = chunk["usage"];
      for (const json& part : chunk["choices"]) {
        const auto index = part["index"].get<size_t>();
        while (choices.size() <= index)
          choices.push_back({{"index", choices.size()}, {"text", ""}, {"finish_reason", json()}});
        json& choice = choices[index];
        EXPECT_TRUE(choice["finish_reason"].is_null()) << "after its end: " << line;
        choice["text"] = choice["text"].get<std::string>() + part["text"].get<std::string>();
        choice["finish_reason"] = part["finish_reason"];
        if (part["logprobs"].is_null()) continue;
        for (const json& token : part["logprobs"]["tokens"]) choice["tokens"].push_back(token);
      }
    }
    return choices;
  }
};

TEST_F(ServedPrompts, EachOfAListIsAnsweredAsIfAlone) {
  const std::vector<std::string> prompts = {R"("Once upon a time")", R"("The fox")", R"("A bee")"};
  // Sampled, so that the completions of one prompt differ.
  const std::string drawn = R"(,"temperature":1,"seed":5,"n":2)";
  std::vector<std::string> expected;
  uint64_t prompt_tokens = 0;
  for (const std::string& prompt : prompts) {
    const json alone = post(kCompletion, completion(prompt, drawn)).json();
    for (const std::string& text : texts(alone["choices"])) expected.push_back(text);
    prompt_tokens += alone["usage"]["prompt_tokens"].get<uint64_t>();
  }
  ASSERT_EQ(expected.size(), 6u);
  EXPECT_NE(expected[0], expected[1]);
  EXPECT_NE(expected[0], expected[2]);
  const std::string list = "[" + prompts[0] + "," + prompts[1] + "," + prompts[2] + "]";
  const json together = post(kCompletion, completion(list, drawn)).json();
  EXPECT_EQ(texts(together["choices"]), expected);
  EXPECT_EQ(together["usage"]["prompt_tokens"], prompt_tokens);
  EXPECT_EQ(together["usage"]["completion_tokens"], 6 * 6);

  const HttpAnswer stream =
      post(kCompletion,
           completion(list, drawn + R"(,"stream":true,"stream_options":{"include_usage":true})"));
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
  json usage;
  EXPECT_EQ(texts(assembled(stream.body, usage)), expected);
  EXPECT_EQ(usage["prompt_tokens"], prompt_tokens);
  EXPECT_EQ(usage["completion_tokens"], 6 * 6);
}

TEST_F(ServedPrompts, MayBeListsOfIds) {
  const std::string first = "[1,20,30]", second = "[40,50]";
  const std::string a = texts(post(kCompletion, completion(first)).json()["choices"]).at(0);
  const std::string b = texts(post(kCompletion, completion(second)).json()["choices"]).at(0);
  EXPECT_NE(a, b);
  const json both = post(kCompletion, completion("[" + first + "," + second + "]")).json();
  EXPECT_EQ(texts(both["choices"]), (std::vector<std::string>{a, b}));
  EXPECT_EQ(both["usage"]["prompt_tokens"], 5);
}

TEST_F(ServedPrompts, AllAreAcceptedOrNone) {
  std::string many = "\"a\"";
  for (int i = 0; i < 64; ++i) many += ",\"a\"";
  EXPECT_EQ(post(kCompletion, completion("[" + many + "]")).status, 400) << "the queue takes 64";
  std::string too_long = "1";
  for (int i = 0; i < 300; ++i) too_long += ",1";
  const HttpAnswer refused = post(kCompletion, completion("[[1],[" + too_long + "]]"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.json()["error"]["param"], "prompt");
  EXPECT_EQ(refused.json()["error"]["code"], "context_length_exceeded");
  EXPECT_EQ((*engine_)->metrics().requests_submitted.value(), 0u);
  EXPECT_EQ((*engine_)->metrics().requests_refused.value(), 65u + 2u);
}

// The tokens of a stop string and the one that ends the text are not among them.
TEST_F(ServedPrompts, LogprobsAreOfTheTextsTokens) {
  const auto reply = [&](const std::string& more) {
    return post(kCompletion, completion("\"a\"", R"(,"logprobs":1)" + more)).json()["choices"][0];
  };
  const json whole = reply("");
  const json& tokens = whole["logprobs"]["tokens"];
  ASSERT_EQ(tokens.size(), 6u) << whole;
  const json stopped = reply(R"(,"stop":)" + tokens[3].dump());
  const json& kept = stopped["logprobs"]["tokens"];
  ASSERT_LE(kept.size(), 3u) << stopped;
  std::string text;
  for (const json& token : kept) text += token.get<std::string>();
  EXPECT_EQ(stopped["text"], text);
}

TEST_F(ServedPrompts, AStreamHasTheLogprobsOfTheWholeReply) {
  const auto ask = [&](const std::string& more) {
    return post(kCompletion, completion("\"a\"", R"(,"logprobs":1)" + more));
  };
  const std::string end = ask("").json()["choices"][0]["logprobs"]["tokens"][3];
  // A stop string that comes, one that begins in the middle of a token, and one that never comes.
  for (const std::string& stop : {end, end.substr(end.size() / 2), std::string("never")}) {
    const std::string stopping = R"(,"stop":)" + json(stop).dump();
    const json whole = ask(stopping).json()["choices"][0];
    json usage;
    const json streamed = assembled(ask(stopping + R"(,"stream":true)").body, usage)[0];
    EXPECT_EQ(streamed["text"], whole["text"]) << stop;
    EXPECT_EQ(streamed.value("tokens", json::array()), whole["logprobs"]["tokens"]) << stop;
    EXPECT_EQ(streamed["finish_reason"], whole["finish_reason"]) << stop;
  }
}

class ServedScript : public ServedPrompts {
 protected:
  std::vector<TokenId> script() const override {
    return tokenizer_->encode("Once<|end|> upon<|end|> a time, there was a fox",
                              {.add_bos = false, .parse_special = true});
  }
};

// With ignore_eos, a token that would end the text neither ends it nor shows in it.
TEST_F(ServedScript, LogprobsCountWhatTheTextShows) {
  const auto ask = [&](const std::string& more) {
    return post(kCompletion, R"({"temperature":0,"ignore_eos":true,"max_tokens":9,"prompt":"a",
                                 "logprobs":0,"stop":"there")" +
                                 more + "}");
  };
  const json whole = ask("").json()["choices"][0];
  const std::string text = whole["text"];
  EXPECT_EQ(text, "Once upon a time, ");
  const json& tokens = whole["logprobs"]["tokens"];
  std::string shown;
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(whole["logprobs"]["text_offset"][i], shown.size()) << tokens;
    if (tokens[i] != "<|end|>") shown += tokens[i].get<std::string>();
  }
  EXPECT_EQ(shown.substr(0, text.size()), text) << tokens;
  json usage;
  const json streamed = assembled(ask(R"(,"stream":true)").body, usage)[0];
  EXPECT_EQ(streamed["text"], text);
  EXPECT_EQ(streamed["tokens"], tokens);
}

TEST_F(ServedPrompts, ALimitBeyondTheContextIsTheContext) {
  const json reply =
      post(kCompletion, R"({"prompt":[1,2,3,4],"ignore_eos":true,"max_tokens":100000})").json();
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 4);
  EXPECT_EQ(reply["usage"]["completion_tokens"], 252);
  EXPECT_EQ(reply["usage"]["total_tokens"], 256);
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
