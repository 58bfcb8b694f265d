// Connections without an engine behind them: kept alive, refused, slow, too many, closed in order.
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
        options, [this](const HttpRequest& request, HttpReply& reply) { handle(request, reply); },
        [](const HttpError& error, HttpReply& reply) {
          reply.send(error.status, "text/plain", error.message);
        });
    ASSERT_TRUE(made.ok()) << made.error().message;
    listener_ = std::move(made).value();
  }

  void handle(const HttpRequest& request, HttpReply& reply) {
    if (request.path == "/echo") return reply.send(200, "text/plain", request.body);
    if (request.path == "/throw") throw std::bad_alloc();
    if (request.path == "/nothing") return reply.send(204, {}, {});
    if (!reply.begin("text/plain")) return;
    // Until the client has gone or somebody lets it end.
    while (!reply.client_gone() && !let_end_) {
      if (!reply.write("tick ")) break;
      std::this_thread::sleep_for(1ms);
    }
    if (let_end_) reply.end();
    ++streams_ended_;
  }

  ScopedLogSink quiet_{[this](std::string_view) { ++lines_; }};
  std::atomic<int> lines_{0}, streams_ended_{0};
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

TEST_F(HttpListenerTest, RefusesWhatIsNotARequestAndCloses) {
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

TEST_F(HttpListenerTest, ToldToContinueTheClientSendsTheBody) {
  start();
  HttpClient client(listener_->port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  ASSERT_TRUE(client.read_until("100 Continue\r\n\r\n"));
  client.send("ok");
  EXPECT_EQ(client.read().body, "ok");
}

TEST_F(HttpListenerTest, AnExceptionIsOneClientsTrouble) {
  start();
  HttpClient client(listener_->port());
  EXPECT_EQ(client.get("/throw").status, 500);
  EXPECT_EQ(client.post("/echo", "still here").body, "still here");
}

TEST_F(HttpListenerTest, SlowSendersAreToldSoWhileOthersAreServed) {
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

TEST_F(HttpListenerTest, NewcomersTakeThePlaceOfTheIdle) {
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
    // Where a process may not have so many files, fewer have to do.
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

TEST_F(HttpListenerTest, ClosingLetsRepliesUnderWayEnd) {
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

// Nothing is to be finished for who has sent half a request.
TEST_F(HttpListenerTest, ClosingDoesNotWaitForRequestsThatHaveNotCome) {
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
  const auto second = HttpListener::create({.port = listener_->port()}, {}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("in use"));
}

TEST_F(HttpListenerTest, AnAddressThatIsNoneIsAnError) {
  EXPECT_FALSE(HttpListener::create({.host = "no.such.host.invalid"}, {}, {}).ok());
}

}  // namespace
}  // namespace hearth::testing
