// Loads against a scripted server: closed loop, open loop, refusals, broken streams, servers that
// do not count, and Ctrl-C.
#include "tools/load/load_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/load/load_peer.h"
#include "tools/load/load_report.h"
#include "tools/replay/synthetic_trace.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;
using State = LoadedRequest::State;

class LoadRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HttpTransfers::available()) GTEST_SKIP() << "this build has no libcurl";
    transfers_ = HttpTransfers::create().value();
  }

  // A load without questions before it, so that tests know which request is which.
  LoadRun run_on(LoadPeer& peer, const Trace& trace, LoadRunSettings settings,
                 const LoadWatch& watch = {}) {
    LoadedServer target;
    target.server = {.host = "127.0.0.1", .port = std::to_string(peer->port())};
    target.model = "stub";
    target.form = PromptForm::kIds;
    target.ids = {11, 12, 13};
    return run_load(*transfers_, target, trace, settings, watch);
  }
  static Trace trace_of(const std::string& text) { return make_synthetic_trace(text).value(); }

  std::unique_ptr<HttpTransfers> transfers_;
};

TEST_F(LoadRunTest, AClosedLoopKeepsItsClientsBusyAndCountsAsTheServerDoes) {
  LoadPeer peer({.answer = [](const auto& body, const auto& wire, size_t) {
    EXPECT_EQ(body["prompt"].size(), 7u);
    EXPECT_EQ(body["max_tokens"], 6);
    EXPECT_EQ(body["stream"], true);
    EXPECT_EQ(body["ignore_eos"], true);
    EXPECT_EQ(body["stream_options"]["include_usage"], true);
    stream_answer(wire, 3, 6, 0.01);
  }});
  const LoadRun run = run_on(peer, trace_of("n=12,prompt=7,gen=6"), {.clients = 3});
  EXPECT_EQ(peer->most_at_once(), 3u);
  ASSERT_EQ(run.requests.size(), 12u);
  for (const LoadedRequest& request : run.requests) {
    EXPECT_EQ(request.state, State::kCompleted) << request.error;
    EXPECT_EQ(request.timing.token_times.size(), 3u);
    EXPECT_EQ(request.tokens, 6u);  // two per chunk
    EXPECT_TRUE(request.server_counted);
    EXPECT_GE(request.timing.time_to_first_token(), 0.009);
    EXPECT_GE(request.end, request.timing.token_times.back());
  }
  // A request begins when its client is free, not when the load begins.
  EXPECT_GT(run.requests[11].timing.arrival, 0.05);
  const LoadReport report = make_load_report(run, {}, "3 clients");
  EXPECT_EQ(report.completed, 12u);
  EXPECT_EQ(report.generated_tokens, 72u);
  EXPECT_EQ(report.counted_by_chunks, 0u);
}

TEST_F(LoadRunTest, AnOpenLoopSendsRequestsWhenTheyAreDue) {
  LoadPeer peer(
      {.answer = [](const auto&, const auto& wire, size_t) { stream_answer(wire, 1, 1, 0.3); }});
  Trace trace = trace_of("n=3,prompt=4,gen=1");
  for (size_t i = 0; i < 3; ++i) trace.requests[i].arrival_seconds = 0.04 * static_cast<double>(i);
  const LoadRun run = run_on(peer, trace, {});
  EXPECT_EQ(peer->most_at_once(), 3u);  // no request waited for an answer
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(run.requests[i].state, State::kCompleted) << run.requests[i].error;
    EXPECT_DOUBLE_EQ(run.requests[i].timing.arrival, trace.requests[i].arrival_seconds);
    EXPECT_GE(run.requests[i].timing.time_to_first_token(), 0.29);
  }
}

TEST_F(LoadRunTest, ARefusedRequestWaitsAsLongAsTheServerSays) {
  LoadPeer peer({.answer = [](const auto&, const auto& wire, size_t number) {
    if (number == 0) return wire.reply(429, "{}", "Retry-After: 1\r\n");
    stream_answer(wire, 2, 2);
  }});
  const LoadRun run = run_on(peer, trace_of("n=1,prompt=4,gen=2"), {.clients = 1});
  EXPECT_EQ(run.requests[0].state, State::kCompleted);
  EXPECT_EQ(run.requests[0].refusals, 1u);
  // The client has waited since its first attempt.
  EXPECT_GE(run.requests[0].timing.time_to_first_token(), 1.0);
  EXPECT_EQ(peer.completions(), 2u);
}

TEST_F(LoadRunTest, ARequestThatIsRefusedTooOftenIsCountedApart) {
  LoadPeer peer({.answer = [](const auto&, const auto& wire, size_t number) {
    if (number % 2 == 0) return wire.reply(503, "{}", "Retry-After: 9\r\n");
    stream_answer(wire, 2, 2);
  }});
  const LoadRun run = run_on(peer, trace_of("n=4,prompt=4,gen=2"), {.clients = 1, .retries = 0});
  const LoadReport report = make_load_report(run, {}, "x");
  EXPECT_EQ(report.refused, 2u);
  EXPECT_EQ(report.refusals, 2u);
  EXPECT_EQ(report.completed, 2u);
  EXPECT_EQ(report.failed, 0u);
}

TEST_F(LoadRunTest, ErrorsAreCountedByKindAndTheRestGoesOn) {
  LoadPeer peer({.answer = [](const auto&, const auto& wire, size_t number) {
    switch (number) {
      case 0:  // the connection ends in the middle
        wire.begin_stream();
        wire.event(R"({"choices":[{"text":"a"}]})");
        return;
      case 1:  // the stream ends properly, the answer does not
        wire.begin_stream();
        wire.event(R"({"choices":[{"text":"a"}]})");
        return wire.end_stream();
      case 2:
        wire.begin_stream();
        wire.event(R"({"error":{"message":"the device is lost"}})");
        return wire.end_stream();
      case 3:
        return wire.reply(400, R"({"error":{"message":"too long"}})");
      case 4:
        wire.begin_stream();
        wire.event("nonsense");
        return wire.pause(0.05);
      default:
        return stream_answer(wire, 2, 2);
    }
  }});
  const LoadRun run = run_on(peer, trace_of("n=7,prompt=4,gen=2"), {.clients = 1});
  const LoadReport report = make_load_report(run, {}, "x");
  EXPECT_EQ(report.completed, 2u);
  EXPECT_EQ(report.failed, 5u);
  ASSERT_EQ(report.errors.size(), 4u);
  EXPECT_EQ(report.errors.at("broken stream").count, 2u);
  EXPECT_EQ(report.errors.at("error in the stream").example, "the device is lost");
  EXPECT_EQ(report.errors.at("HTTP status 400").example, "too long");
  EXPECT_EQ(report.errors.at("malformed stream").count, 1u);
  EXPECT_EQ(report.met_goal, 2u);
  EXPECT_THAT(format_load(std::span(&report, 1), {}),
              HasSubstr("1 request: HTTP status 400: too long\n"));
}

TEST_F(LoadRunTest, WithoutUsageChunksAreCountedAndTheTableSaysSo) {
  LoadPeer peer(
      {.answer = [](const auto&, const auto& wire, size_t) { stream_answer(wire, 4, 0); }});
  const LoadRun run = run_on(peer, trace_of("n=2,prompt=4,gen=9"), {.clients = 2});
  const LoadReport report = make_load_report(run, {}, "x");
  EXPECT_EQ(report.generated_tokens, 8u);
  EXPECT_EQ(report.counted_by_chunks, 2u);
  EXPECT_THAT(format_load(std::span(&report, 1), {}), HasSubstr("did not report its usage"));
}

TEST_F(LoadRunTest, AnInterruptKeepsWhatHasComeSoFar) {
  LoadPeer peer({.answer = [](const auto&, const auto& wire, size_t number) {
    stream_answer(wire, number == 0 ? 2 : 100, 100, 0.01);
  }});
  size_t ended = 0;
  const LoadRun run = run_on(
      peer, trace_of("n=5,prompt=4,gen=2"), {.clients = 2},
      {.go_on = [&] { return ended == 0; }, .ended = [&](const LoadedRequest&) { ++ended; }});
  EXPECT_TRUE(run.interrupted);
  const LoadReport report = make_load_report(run, {}, "x");
  EXPECT_EQ(report.completed, 1u);
  EXPECT_EQ(report.unfinished, 4u);
  EXPECT_EQ(report.failed, 0u);
  EXPECT_FALSE(run.requests[1].timing.token_times.empty());
  EXPECT_THAT(format_load(std::span(&report, 1), {}), HasSubstr("interrupted"));
}

TEST_F(LoadRunTest, AServerThatGoesAwayIsAnErrorPerRequest) {
  LoadedServer target;
  target.server = {.host = "127.0.0.1", .port = "1"};
  target.form = PromptForm::kText;
  const LoadRun run = run_load(*transfers_, target, trace_of("n=3"), {.clients = 2});
  const LoadReport report = make_load_report(run, {}, "x");
  EXPECT_EQ(report.errors.at("no connection").count, 3u);
  EXPECT_THAT(report.errors.at("no connection").example, HasSubstr("refused"));
}

}  // namespace
}  // namespace hearth::testing
