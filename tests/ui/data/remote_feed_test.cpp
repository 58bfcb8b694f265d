// The remote feed against a real server with a stand-in engine, and against misbehaving servers.
#include "ui/feeds/remote_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/served_stand_in.h"
#include "tests/support/tls_peer.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

constexpr RemoteFeedOptions kQuick{
    .first_retry_s = 0.02, .max_retry_s = 0.1, .connect_timeout_s = 1};

std::unique_ptr<RemoteFeed> feed_of(int port, RemoteFeedOptions options = kQuick) {
  auto feed = RemoteFeed::create("http://127.0.0.1:" + std::to_string(port), options);
  EXPECT_TRUE(feed.ok());
  return feed.ok() ? std::move(*feed) : nullptr;
}

constexpr const char* kNoCurl = "this build has no libcurl";

class RemoteFeedAlone : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HttpTransfers::available()) GTEST_SKIP() << kNoCurl;
  }
};

class RemoteFeedTest : public ServedStandIn {
 protected:
  void SetUp() override {
    if (!HttpTransfers::available()) GTEST_SKIP() << kNoCurl;
    ServedStandIn::SetUp();
  }
  void generate(uint32_t tokens) {
    auto stream = (*engine_)->submit(
        {.prompt = std::vector<TokenId>(20, 5), .max_tokens = tokens, .ignore_end = true});
    ASSERT_TRUE(stream.ok());
    read_ids(*stream);
  }
  // Another server for the same engine; port 0 picks a free one.
  std::unique_ptr<HttpServer> another(ServerOptions options) {
    auto server = HttpServer::create(options);
    EXPECT_TRUE(server.ok()) << server.error().message;
    (*server)->serve({.engine = **engine_,
                      .tokenizer = *tokenizer_,
                      .chat_template = chat_.get(),
                      .name = "storyteller",
                      .device = "a device"});
    return std::move(*server);
  }
  // Polls as frames do, collecting steps, until the condition holds.
  template <class Condition>
  bool frames_until(RemoteFeed& feed, Condition condition) {
    return comes_true([&] {
      feed.poll(view_);
      steps_.insert(steps_.end(), view_.new_steps.begin(), view_.new_steps.end());
      return condition();
    });
  }

  EngineView view_;
  std::vector<StepRecord> steps_;
};

TEST_F(RemoteFeedTest, ShowsTheStepsOfTheServer) {
  const auto server = another({.port = 0});
  Policy policy = *named_policy("packed");
  (*engine_)->set_policy(policy);
  view_.generation = 7;
  const auto feed = feed_of(server->port());
  ASSERT_TRUE(frames_until(*feed, [&] { return view_.connected && !view_.model.empty(); }));
  EXPECT_EQ(view_.model, "storyteller");
  EXPECT_EQ(view_.device, "a device");
  EXPECT_EQ(view_.limits.pool_blocks, 256u);
  EXPECT_EQ(view_.limits.context, 256u);
  EXPECT_EQ(view_.policy, policy);
  EXPECT_EQ(view_.failure, "");
  EXPECT_FALSE(view_.has_snapshot);
  EXPECT_NEAR(view_.now, (*engine_)->seconds(), 1.0);
  EXPECT_EQ(view_.generation, 7u);

  generate(10);
  ASSERT_TRUE(frames_until(*feed, [&] { return steps_.size() >= 10; }));
  EXPECT_EQ(view_.missed_steps, 0u);
  StepRecord record;
  for (size_t i = 0; i < steps_.size(); ++i) {
    ASSERT_TRUE((*engine_)->records().read(i, record));
    EXPECT_EQ(step_event(steps_[i]), step_event(record)) << i;
  }
  EXPECT_EQ(view_.totals.generated_tokens, 10u);
  EXPECT_EQ(view_.totals.prompt_tokens, 20u);
  EXPECT_EQ(view_.totals.requests_submitted, 1u);
  EXPECT_GE(view_.now, steps_.back().end_seconds);
}

TEST_F(RemoteFeedTest, BeginsWithTheStepsBeforeConnecting) {
  const auto server = another({.port = 0});
  generate(12);
  ASSERT_TRUE(comes_true([&] { return (*engine_)->records().written() >= 12; }));
  const auto feed = feed_of(server->port());
  ASSERT_TRUE(frames_until(*feed, [&] { return steps_.size() >= 12; }));
  EXPECT_EQ(steps_.front().step, 1u);
  EXPECT_EQ(view_.missed_steps, 0u);
  // They are history: totals, and the speed that comes from them, are about what is watched.
  EXPECT_EQ(view_.totals.generated_tokens, 0u);
  generate(3);
  EXPECT_TRUE(frames_until(*feed, [&] { return view_.totals.generated_tokens == 3; }));
}

// The stand-in's ring has 256 places, which these steps go around once.
TEST_F(RemoteFeedTest, HistoryBeginsWithTheOldestStepThatIsStillRecorded) {
  const auto server = another({.port = 0});
  for (int i = 0; i < 3; ++i) generate(120);
  ASSERT_TRUE(comes_true([&] { return (*engine_)->records().written() >= 360; }));
  const uint64_t written = (*engine_)->records().written();
  const auto feed = feed_of(server->port());
  ASSERT_TRUE(
      frames_until(*feed, [&] { return !steps_.empty() && steps_.back().step == written; }));
  EXPECT_EQ(steps_.size(), 256u);
  EXPECT_EQ(steps_.front().step, written - 255);
}

TEST_F(RemoteFeedTest, AChangedPolicyAndAPauseReachTheDashboard) {
  const auto server = another({.port = 0});
  const auto feed = feed_of(server->port());
  ASSERT_TRUE(frames_until(*feed, [&] { return view_.connected && !view_.model.empty(); }));
  EXPECT_FALSE(view_.controllable);
  (*engine_)->set_policy(*named_policy("static"));
  EXPECT_TRUE(frames_until(*feed, [&] { return view_.policy == *named_policy("static"); }));
  (*engine_)->set_limits(3, 32);
  EXPECT_TRUE(frames_until(*feed, [&] { return view_.limits.max_sequences == 3; }));
  EXPECT_EQ(view_.most_limits.max_sequences, 8u);
  (*engine_)->pause();
  EXPECT_TRUE(frames_until(*feed, [&] { return view_.state == EngineState::kPaused; }));
  (*engine_)->resume();
  EXPECT_TRUE(frames_until(*feed, [&] { return view_.state == EngineState::kRunning; }));
}

TEST_F(RemoteFeedTest, AsksForAMissingApiKeyAndSendsAGivenOne) {
  const auto server = another({.port = 0, .api_keys = {"open sesame"}});
  const auto without = feed_of(server->port());
  ASSERT_TRUE(frames_until(*without, [&] { return !view_.failure.empty(); }));
  EXPECT_THAT(view_.failure, HasSubstr("--api-key"));
  EXPECT_EQ(view_.failure.find('\n'), std::string::npos);
  EXPECT_FALSE(view_.connected);
  RemoteFeedOptions options = kQuick;
  options.api_key = "open sesame";
  const auto with = feed_of(server->port(), options);
  EXPECT_TRUE(frames_until(*with, [&] { return view_.connected; }));
  EXPECT_EQ(view_.failure, "");
}

TEST_F(RemoteFeedTest, ReconnectsWhenTheServerIsBack) {
  auto server = another({.port = 0});
  const int port = server->port();
  const auto feed = feed_of(port);
  ASSERT_TRUE(frames_until(*feed, [&] { return view_.connected; }));
  generate(5);
  ASSERT_TRUE(frames_until(*feed, [&] { return steps_.size() >= 5; }));
  server->drain();
  server.reset();
  ASSERT_TRUE(frames_until(*feed, [&] { return !view_.connected; }));
  EXPECT_THAT(view_.failure, HasSubstr("retrying in"));
  (*engine_)->undrain();
  server = another({.port = port});
  ASSERT_TRUE(frames_until(*feed, [&] { return view_.connected; }));
  EXPECT_EQ(view_.failure, "");
}

TEST_F(RemoteFeedAlone, ReportsARefusedConnection) {
  const auto feed = feed_of(1);
  EngineView view;
  ASSERT_TRUE(comes_true([&] {
    feed->poll(view);
    return !view.failure.empty();
  }));
  EXPECT_THAT(view.failure, HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(view.failure, HasSubstr("refused"));
  EXPECT_FALSE(view.connected);
}

TEST_F(RemoteFeedAlone, RejectsInvalidAddressesAndKeys) {
  EXPECT_FALSE(RemoteFeed::create("", {}).ok());
  EXPECT_FALSE(RemoteFeed::create("box", {.api_key = "a\r\nX: y"}).ok());
}

// Sends one canned reply per connection.
class CannedServer {
 public:
  explicit CannedServer(std::vector<std::string> replies) : replies_(std::move(replies)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (const std::string& reply : replies_) {
        const int client = accept(listener_, nullptr, nullptr);
        if (client < 0) return;
        char request[2048];
        static_cast<void>(recv(client, request, sizeof(request), 0));
        static_cast<void>(::send(client, reply.data(), reply.size(), MSG_NOSIGNAL));
        close(client);
      }
    });
  }
  ~CannedServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  int port() const { return port_; }

 private:
  std::vector<std::string> replies_;
  int listener_ = -1, port_ = 0;
  std::thread thread_;
};

std::string events(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + body;
}

TEST_F(RemoteFeedAlone, CountsMissedStepsAndDetectsARestart) {
  const auto hello = [](uint64_t instance, double now) {
    return "event: hello\ndata: " +
           hello_event({.model = "m", .instance = instance, .now = now}).dump() + "\n\n";
  };
  const auto step = [](uint64_t number) {
    return "data: " +
           step_event({.step = number, .end_seconds = 1.0 * static_cast<double>(number)}).dump() +
           "\n\n";
  };
  CannedServer server({events(hello(1, 4) + step(4) + step(5) + step(8)),
                       events(hello(1, 10) + step(8) + step(11)), events(hello(2, 100) + step(1))});
  const auto feed = feed_of(server.port());
  EngineView view;
  view.generation = 3;
  std::vector<uint64_t> seen;
  uint64_t missed = 0;
  ASSERT_TRUE(comes_true([&] {
    feed->poll(view);
    for (const StepRecord& record : view.new_steps) seen.push_back(record.step);
    missed += view.missed_steps;
    return !seen.empty() && seen.back() == 1;
  }));
  EXPECT_EQ(view.generation, (uint64_t{1} << 32) + 3);
  EXPECT_EQ(view.totals.requests_submitted, 0u);
  // Steps from just before the restart may be dropped, but none may come twice or out of order.
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end() - 1));
  EXPECT_LE(missed, 4u);
}

TEST_F(RemoteFeedAlone, APreemptedRequestFindingItsOwnBlocksIsNoPrefixHit) {
  const auto step = [](StepRecord record) { return "data: " + step_event(record).dump() + "\n\n"; };
  CannedServer server({events(
      "event: hello\ndata: " + hello_event({.model = "m", .instance = 1, .now = 1}).dump() +
      "\n\n" + step({.step = 1, .end_seconds = 1, .prefix_hits = {{.request = 7, .tokens = 32}}}) +
      step({.step = 2, .end_seconds = 2, .preempted_recompute = {7}}) +
      step({.step = 3, .end_seconds = 3, .prefix_hits = {{.request = 7, .tokens = 48}}}))});
  const auto feed = feed_of(server.port());
  EngineView view;
  uint64_t steps = 0;
  ASSERT_TRUE(comes_true([&] {
    feed->poll(view);
    steps += view.new_steps.size();
    return steps == 3;
  }));
  EXPECT_EQ(view.totals.prefix_hit_tokens, 32u);
}

// An idle engine records no steps, so a counts event has to report the last change.
TEST_F(RemoteFeedAlone, CountsEventsUpdateTheCountsWithoutSteps) {
  StepRecord last{.step = 1};
  last.counts = {.running = 2, .blocks_used = 19, .blocks_shared = 3};
  CannedServer server({events("data: " + step_event(last).dump() + "\n\nevent: counts\ndata: " +
                              counts_event({.blocks_cached = 19}).dump() + "\n\n")});
  const auto feed = feed_of(server.port());
  EngineView view;
  ASSERT_TRUE(comes_true([&] {
    feed->poll(view);
    return view.counts.blocks_cached == 19;
  }));
  EXPECT_EQ(view.counts.running, 0u);
  EXPECT_EQ(view.counts.blocks_used, 0u);
  EXPECT_EQ(view.counts.blocks_shared, 3u);
}

TEST_F(RemoteFeedAlone, ConnectsByTlsIfTheCertificateIsTrusted) {
  const TlsPeer peer(events("event: hello\ndata: " +
                            hello_event({.model = "m", .instance = 1, .now = 1}).dump() + "\n\n"));
  if (!peer.runs()) GTEST_SKIP() << "openssl is not installed";
  const std::string url = "https://127.0.0.1:" + std::to_string(peer.port());
  EngineView view;
  {
    const auto feed = RemoteFeed::create(url, kQuick).value();
    ASSERT_TRUE(comes_true([&] {
      feed->poll(view);
      return !view.failure.empty();
    }));
    EXPECT_THAT(view.failure, HasSubstr("certificate is not trusted"));
    EXPECT_EQ(view.failure.find('\n'), std::string::npos);
  }
  setenv("SSL_CERT_FILE", peer.certificate().c_str(), 1);
  auto feed = RemoteFeed::create(url, kQuick).value();
  EXPECT_TRUE(comes_true([&] {
    feed->poll(view);
    return view.model == "m";
  }));
  feed.reset();  // its thread reads the variable
  unsetenv("SSL_CERT_FILE");
}

TEST_F(RemoteFeedAlone, SurvivesServersThatSendNonsense) {
  CannedServer server({"nonsense\r\n\r\n", "", events("data: {\"step\":-1}\n\n"),
                       events("event: hello\ndata: [\n\n"), events("data: {\"step\":1}\n\n")});
  const auto feed = feed_of(server.port());
  EngineView view;
  std::vector<std::string> failures;
  ASSERT_TRUE(comes_true([&] {
    feed->poll(view);
    if (!view.failure.empty()) failures.push_back(view.failure);
    return !view.new_steps.empty();
  }));
  EXPECT_THAT(failures, ::testing::Contains(HasSubstr("not HTTP")));
}

}  // namespace
}  // namespace hearth::testing
