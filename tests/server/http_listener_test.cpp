// Connections without an engine: kept alive, refused, slow, too many, closed in order.
#include "tools/server/http_listener.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/log.h"
#include "tests/support/http_client.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

class HttpListenerTest : public ::testing::Test {
 protected:
  void start(HttpListenerOptions options = {}) {
    auto made = HttpListener::create(
        options,
        {.admit = [](const HttpRequest& head, HttpReply& reply) { return admit(head, reply); },
         .handle = [this](HttpRequest& request, HttpReply& reply) { handle(request, reply); },
         .refuse =
             [](const HttpError& error, HttpReply& reply) {
               reply.send(error.status, "text/plain", error.message);
             }});
    ASSERT_TRUE(made.ok()) << made.error().message;
    listener_ = std::move(made).value();
  }

  static bool admit(const HttpRequest& head, HttpReply& reply) {
    if (head.path != "/forbidden") return true;
    reply.send(403, "text/plain", "no");
    return false;
  }

  void handle(HttpRequest& request, HttpReply& reply) {
    if (request.path == "/echo") return reply.send(200, "text/plain", request.body);
    if (request.path == "/throw") throw std::bad_alloc();
    if (request.path == "/nothing") return reply.send(204, {}, {});
    if (!reply.begin("text/plain")) return;
    // Until the client is gone or the test lets it end.
    while (!reply.client_gone() && !let_end_) {
      if (!reply.write(request.path == "/flood" ? std::string(10000, 'x') : "tick ")) break;
      std::this_thread::sleep_for(1ms);
    }
    if (let_end_) reply.end();
    if (reply.client_did_not_read()) ++unread_streams_;
    ++streams_ended_;
  }

  ScopedLogSink quiet_{[this](std::string_view) { ++lines_; }};
  std::atomic<int> lines_{0}, streams_ended_{0}, unread_streams_{0};
  std::atomic<bool> let_end_{false};
  std::unique_ptr<HttpListener> listener_;
};

TEST_F(HttpListenerTest, KeepsAConnectionForMoreRequests) {
  start();
  HttpClient client(listener_->port());
  for (const char* body : {"one", "two", ""}) EXPECT_EQ(client.post("/echo", body).body, body);
  EXPECT_EQ(client.get("/nothing").status, 204);
  // Two at once are answered in order.
  client.send(HttpClient::post_text("/echo", "a") + HttpClient::post_text("/echo", "b"));
  EXPECT_EQ(client.read().body, "a");
  EXPECT_EQ(client.read().body, "b");
  EXPECT_EQ(client.get("/echo", "Connection: close\r\n").status, 200);
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(lines_, 7);
}

TEST_F(HttpListenerTest, RefusesNonsenseAndCloses) {
  start();
  HttpClient client(listener_->port());
  client.send("nonsense\r\n\r\n");
  EXPECT_EQ(client.read().status, 400);
  EXPECT_TRUE(client.closed());
}

TEST_F(HttpListenerTest, AnswersAfterALargeBodyWasRefused) {
  start({.limits = {.body_bytes = 1000}});
  HttpClient client(listener_->port());
  // The reply gets through although the client is still sending.
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n");
  client.send(std::string(4000000, 'a'));
  EXPECT_EQ(client.read().status, 413);
}

TEST_F(HttpListenerTest, ARefusedRequestIsAnsweredBeforeItsBody) {
  start();
  // No byte of the body is sent, and none is asked for.
  HttpClient client(listener_->port());
  client.send(
      "POST /forbidden HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
      "Content-Length: 4000000\r\n\r\n");
  EXPECT_EQ(client.read().status, 403);
  EXPECT_TRUE(client.closed());
  EXPECT_THAT(client.received(), ::testing::Not(HasSubstr("Continue")));
  EXPECT_EQ(listener_->budget().used(), 0u);
  // Without a body the connection can continue.
  HttpClient kept(listener_->port());
  EXPECT_EQ(kept.get("/forbidden").status, 403);
  EXPECT_EQ(kept.post("/echo", "x").body, "x");
}

TEST_F(HttpListenerTest, BodiesBeyondTheBudgetAreRefused) {
  start({.bodies_bytes = 1 << 20});
  // A client that does not finish holds about half of the budget.
  HttpClient slow(listener_->port());
  slow.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" +
            std::string(400000, 'a'));
  for (int i = 0; i < 2000 && listener_->budget().used() < 400000; ++i)
    std::this_thread::sleep_for(1ms);
  ASSERT_GE(listener_->budget().used(), 400000u);
  HttpClient large(listener_->port()), small(listener_->port());
  large.send(HttpClient::post_text("/echo", std::string(900000, 'b')));
  EXPECT_EQ(large.read().status, 503);
  EXPECT_EQ(small.post("/echo", "small").body, "small");
  slow.finish_sending();
  EXPECT_TRUE(slow.closed());
  for (int i = 0; i < 2000 && listener_->budget().used() > 0; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(listener_->budget().used(), 0u);
  HttpClient again(listener_->port());
  EXPECT_EQ(again.post("/echo", std::string(500000, 'c')).body.size(), 500000u);
}

TEST_F(HttpListenerTest, AClientThatNeverReadsHasItsStreamEnded) {
  start({.write = {.backlog_bytes = 100000}});
  HttpClient client(listener_->port());
  client.set_receive_buffer(4096);
  client.send("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
  for (int i = 0; i < 10000 && unread_streams_ == 0; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(unread_streams_, 1);
}

TEST_F(HttpListenerTest, AClientThatReadsLateGetsEverything) {
  start({.write = {.backlog_bytes = 10 << 20}});
  HttpClient client(listener_->port());
  client.send("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
  std::this_thread::sleep_for(200ms);
  let_end_ = true;
  const HttpAnswer answer = client.read();
  EXPECT_GE(answer.body.size(), 10000u);
  EXPECT_EQ(answer.body.size() % 10000, 0u);
  EXPECT_EQ(unread_streams_, 0);
}

TEST_F(HttpListenerTest, AbortedItWaitsForNobody) {
  start();
  HttpClient client(listener_->port());
  client.set_receive_buffer(4096);
  client.send("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
  std::this_thread::sleep_for(300ms);
  const auto began = std::chrono::steady_clock::now();
  listener_->abort();
  listener_->close();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);  // of 30 that it may take to read
}

TEST_F(HttpListenerTest, ToldToContinueTheClientSendsTheBody) {
  start();
  HttpClient client(listener_->port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  ASSERT_TRUE(client.read_until("100 Continue\r\n\r\n"));
  client.send("ok");
  EXPECT_EQ(client.read().body, "ok");
}

TEST_F(HttpListenerTest, AnExceptionFailsOneRequest) {
  start();
  HttpClient client(listener_->port());
  EXPECT_EQ(client.get("/throw").status, 500);
  EXPECT_EQ(client.post("/echo", "still here").body, "still here");
}

TEST_F(HttpListenerTest, SlowSendersTimeOutWhileOthersAreServed) {
  start({.read_time = 300ms});
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(std::make_unique<HttpClient>(listener_->port()));
    slow.back()->send("GET /echo HT");
  }
  HttpClient client(listener_->port());
  EXPECT_EQ(client.post("/echo", "quick").body, "quick");
  // A byte now and then does not help.
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(60ms);
    for (auto& sender : slow) sender->send("T");
  }
  for (auto& sender : slow) EXPECT_EQ(sender->read().status, 408);
}

TEST_F(HttpListenerTest, IdleConnectionsEndAfterAWhile) {
  start({.idle_time = 100ms});
  HttpClient client(listener_->port());
  EXPECT_EQ(client.post("/echo", "x").status, 200);
  EXPECT_TRUE(client.closed(5));
}

TEST_F(HttpListenerTest, ANewConnectionReplacesTheOldestIdleOne) {
  start({.most_connections = 3});
  HttpClient oldest(listener_->port());
  EXPECT_EQ(oldest.post("/echo", "x").status, 200);
  std::this_thread::sleep_for(200ms);  // it is idle a moment after its reply
  std::vector<std::unique_ptr<HttpClient>> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(std::make_unique<HttpClient>(listener_->port()));
    EXPECT_EQ(others.back()->post("/echo", "y").body, "y");
  }
  EXPECT_TRUE(oldest.closed(5));
}

TEST_F(HttpListenerTest, AThousandIdleConnectionsAreHeld) {
  start();
  std::vector<std::unique_ptr<HttpClient>> idle;
  for (int i = 0; i < 1000; ++i) {
    idle.push_back(std::make_unique<HttpClient>(listener_->port()));
    // Where a process may have fewer files than that, fewer are enough.
    if (!idle.back()->connected()) {
      idle.pop_back();
      break;
    }
  }
  EXPECT_GT(idle.size(), 400u);
  HttpClient client(listener_->port());
  EXPECT_EQ(client.post("/echo", "among them").body, "among them");
  for (size_t i = 0; i < idle.size(); i += 97) EXPECT_EQ(idle[i]->post("/echo", "x").body, "x");
}

TEST_F(HttpListenerTest, AClientThatLeavesEndsItsStream) {
  start();
  {
    HttpClient client(listener_->port());
    client.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_TRUE(client.read_until("tick"));
    EXPECT_EQ(streams_ended_, 0);
  }
  for (int i = 0; i < 2000 && streams_ended_ == 0; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(streams_ended_, 1);
}

TEST_F(HttpListenerTest, ClosingLetsRepliesInFlightEnd) {
  start();
  HttpClient idle(listener_->port()), busy(listener_->port());
  EXPECT_EQ(idle.post("/echo", "x").status, 200);
  busy.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(busy.read_until("tick"));
  std::atomic<bool> closed = false;
  std::thread closer([&] {
    listener_->close();
    closed = true;
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(closed);
  let_end_ = true;
  const HttpAnswer answer = busy.read();
  closer.join();
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr("tick"));
  EXPECT_TRUE(idle.closed(5));
  EXPECT_FALSE(HttpClient(listener_->port()).connected());
}

// Half a request is not an open one yet.
TEST_F(HttpListenerTest, ClosingDoesNotWaitForTheRestOfARequest) {
  start();
  HttpClient slow(listener_->port());
  slow.send("POST /echo HTTP/1.1\r\nHo");
  std::this_thread::sleep_for(50ms);
  const auto began = std::chrono::steady_clock::now();
  listener_->close();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);  // of 30 that it may take to send
  EXPECT_TRUE(slow.closed(5));
}

TEST_F(HttpListenerTest, OldClientsGetAStreamThatEndsWithTheConnection) {
  start();
  let_end_ = true;
  HttpClient client(listener_->port());
  client.send("GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(client.closed());
  EXPECT_THAT(client.received(), ::testing::Not(HasSubstr("chunked")));
}

TEST_F(HttpListenerTest, APortInUseIsAnError) {
  start();
  const auto second = HttpListener::create({.port = listener_->port()}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("in use"));
}

TEST_F(HttpListenerTest, AnUnknownHostIsAnError) {
  EXPECT_FALSE(HttpListener::create({.host = "no.such.host.invalid"}, {}).ok());
}

}  // namespace
}  // namespace hearth::testing
