// The HTTP client against a scripted server: whole responses, streams, and everything that goes
// wrong on the way.
#include "tools/http/http_transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scripted_peer.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

class HttpTransfersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HttpTransfers::available()) GTEST_SKIP() << "this build has no libcurl";
    transfers_ = HttpTransfers::create().value();
  }
  WholeResponse get_from(int port, TransferRequest request = {}) {
    request.server = {.host = "127.0.0.1", .port = std::to_string(port)};
    if (request.path.empty()) request.path = "/path";
    return fetch(*transfers_, std::move(request));
  }

  std::unique_ptr<HttpTransfers> transfers_;
};

TEST_F(HttpTransfersTest, SendsBodiesHeadersAndTheKey) {
  ScriptedPeer peer(
      [](const auto&, const auto& wire) { wire.reply(429, "{}", "Retry-After: 7\r\n"); });
  const WholeResponse whole = get_from(
      peer.port(), {.path = "/v1/x", .body = "{\"a\":1}", .key = "sesame", .headers = {"X-A: b"}});
  EXPECT_TRUE(whole.end.ok()) << whole.end.message;
  EXPECT_EQ(whole.head.status, 429);
  EXPECT_EQ(whole.head.retry_after_seconds, 7);
  EXPECT_EQ(whole.head.content_type, "application/json");
  EXPECT_EQ(whole.body, "{}");
  const auto asked = peer.asked();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].method, "POST");
  EXPECT_EQ(asked[0].path, "/v1/x");
  EXPECT_EQ(asked[0].body, "{\"a\":1}");
  EXPECT_THAT(asked[0].head, HasSubstr("Authorization: Bearer sesame\r\n"));
  EXPECT_THAT(asked[0].head, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(asked[0].head, HasSubstr("X-A: b\r\n"));
  EXPECT_EQ(get_from(peer.port()).end.message, "");
  EXPECT_EQ(peer.asked()[1].method, "GET");
}

// Counts calls, and stops when told.
class CountingHandler final : public TransferHandler {
 public:
  bool on_head(const TransferHead& head) override {
    status = head.status;
    return true;
  }
  bool on_body(std::string_view bytes) override {
    body += bytes;
    return body.find(stop_at) == std::string::npos;
  }
  void on_end(const TransferEnd& end) override {
    ++ends;
    failure = end.failure;
  }

  std::string body, stop_at = "never";
  int status = 0, ends = 0;
  TransferFailure failure = TransferFailure::kNone;
};

TEST_F(HttpTransfersTest, ManyStreamsRunOnOneThread) {
  ScriptedPeer peer([](const auto&, const auto& wire) {
    wire.begin_stream();
    for (int i = 0; i < 4; ++i) {
      wire.event(std::to_string(i));
      wire.pause(0.02);
    }
    wire.end_stream();
  });
  std::vector<CountingHandler> handlers(8);
  for (CountingHandler& handler : handlers)
    transfers_->start(
        {.server = {.host = "127.0.0.1", .port = std::to_string(peer.port())}, .path = "/"},
        handler);
  const auto all_ended = [&] {
    return std::ranges::all_of(handlers, [](const auto& one) { return one.ends > 0; });
  };
  while (!all_ended()) transfers_->run(0.1);
  for (const CountingHandler& handler : handlers) {
    EXPECT_EQ(handler.ends, 1);
    EXPECT_EQ(handler.status, 200);
    EXPECT_EQ(handler.failure, TransferFailure::kNone);
    EXPECT_EQ(handler.body, "data: 0\n\ndata: 1\n\ndata: 2\n\ndata: 3\n\n");
  }
  EXPECT_GT(peer.most_at_once(), 1u);
}

TEST_F(HttpTransfersTest, AHandlerMayStopATransfer) {
  ScriptedPeer peer([](const auto&, const auto& wire) {
    wire.begin_stream();
    for (int i = 0; i < 100; ++i) {
      wire.event("more");
      wire.pause(0.002);
    }
  });
  CountingHandler handler;
  handler.stop_at = "more";
  transfers_->start(
      {.server = {.host = "127.0.0.1", .port = std::to_string(peer.port())}, .path = "/"}, handler);
  while (handler.ends == 0) transfers_->run(0.1);
  EXPECT_EQ(handler.failure, TransferFailure::kStopped);
}

TEST_F(HttpTransfersTest, FailuresHaveAKindAndAReason) {
  const WholeResponse refused = get_from(1);
  EXPECT_EQ(refused.end.failure, TransferFailure::kUnreachable);
  EXPECT_THAT(refused.end.message, HasSubstr("refused"));

  ScriptedPeer nonsense([](const auto&, const auto& wire) { wire.send("nonsense\r\n\r\n"); });
  EXPECT_EQ(get_from(nonsense.port()).end.failure, TransferFailure::kNotHttp);

  ScriptedPeer silent([](const auto&, const auto&) {});
  EXPECT_EQ(get_from(silent.port()).end.failure, TransferFailure::kBroken);

  ScriptedPeer half([](const auto&, const auto& wire) {
    wire.begin_stream();
    wire.event("one");
  });
  const WholeResponse broken = get_from(half.port());
  EXPECT_EQ(broken.end.failure, TransferFailure::kBroken);
  EXPECT_EQ(broken.head.status, 200);
  EXPECT_EQ(broken.body, "data: one\n\n");

  ScriptedPeer late([](const auto&, const auto& wire) { wire.pause(0.3); });
  EXPECT_EQ(get_from(late.port(), {.head_seconds = 0.05}).end.failure, TransferFailure::kTimeout);
  EXPECT_EQ(get_from(late.port(), {.total_seconds = 0.05}).end.failure, TransferFailure::kTimeout);

  ScriptedPeer plain([](const auto&, const auto& wire) { wire.reply(200, "{}"); });
  TransferRequest with_tls{
      .server = {.tls = true, .host = "127.0.0.1", .port = std::to_string(plain.port())},
      .path = "/"};
  EXPECT_EQ(fetch(*transfers_, with_tls).end.failure, TransferFailure::kTls);
}

// It said "stopped".
TEST_F(HttpTransfersTest, AnEndlessAnswerIsRefusedWithAReason) {
  ScriptedPeer endless(
      [](const auto&, const auto& wire) { wire.reply(200, std::string(17 << 20, 'x')); });
  const TransferEnd end = get_from(endless.port()).end;
  EXPECT_EQ(end.failure, TransferFailure::kStopped);
  EXPECT_EQ(end.message, "the server's answer is longer than 16 MiB");
}

TEST_F(HttpTransfersTest, AWaitCanBeInterrupted) {
  ScriptedPeer late([](const auto&, const auto& wire) { wire.pause(0.5); });
  int asked = 0;
  const WholeResponse stopped =
      fetch(*transfers_,
            {.server = {.host = "127.0.0.1", .port = std::to_string(late.port())}, .path = "/"},
            [&] { return ++asked < 2; });
  EXPECT_EQ(stopped.end.failure, TransferFailure::kStopped);
}

}  // namespace
}  // namespace hearth::testing
