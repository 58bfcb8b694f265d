// hearth serve under many clients for minutes: some leave in the middle, some never read, some send
// nonsense, and the pool has few KV blocks, so that requests are preempted all the time. At the end
// nothing may be left of them.
//
// HEARTH_SOAK_SECONDS and HEARTH_SOAK_CLIENTS set how long and how many; HEARTH_SOAK_SEED decides
// what the clients do, though not how their requests meet. `tools/test` runs a short form, and
// `tools/test --slow` 64 clients for 3 minutes.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/malformed_request.h"
#include "tests/support/serving.h"

namespace hearth::testing {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kPoolBlocks = 24;
// For an answer; far more than any takes, as the machine may run other tests.
constexpr double kPatienceSeconds = 300;

int setting(const char* name, int standard) {
  const char* const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::atoi(text) : standard;
}

// What all clients did and saw.
struct Tally {
  std::atomic<int> answered{0}, left{0}, unread{0}, refused{0}, other{0};
  std::mutex mutex;
  std::vector<std::string> wrong;

  void note(const std::string& what) {
    const std::lock_guard lock(mutex);
    if (wrong.size() < 10) wrong.push_back(what.substr(0, 400));
  }
};

class Client {
 public:
  Client(int port, unsigned seed, Tally& tally) : port_(port), random_(seed), tally_(tally) {}

  void run(Clock::time_point end) {
    while (Clock::now() < end) {
      const unsigned what = below(100);
      if (what < 45)
        ask();
      else if (what < 65)
        leave();
      else if (what < 70)
        never_read(end);
      else if (what < 95)
        send_nonsense();
      else
        look_around();
    }
  }

 private:
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

  struct Question {
    std::string path;
    json body;
    int tokens = 0, n = 1;
    bool stream = false;

    std::string text() const { return HttpClient::post_text(path, body.dump()); }
  };
  // Well-formed, and short enough for the pool.
  Question question() {
    Question made{.path = {}, .body = {}, .tokens = static_cast<int>(below(32)) + 1};
    made.stream = below(2) == 0;
    made.n = below(8) == 0 ? 3 : 1;
    made.body = {{"max_tokens", made.tokens},
                 {"ignore_eos", true},
                 {"seed", below(1000)},
                 {"stream", made.stream},
                 {"n", made.n}};
    std::string text = "Once upon a time";
    for (unsigned words = below(20); words > 0; --words) text += fmt::format(" w{}", below(50));
    if (below(2) == 0) {
      made.path = "/v1/chat/completions";
      made.body["messages"] = {{{"role", "user"}, {"content", text}}};
    } else {
      made.path = "/v1/completions";
      made.body["prompt"] = text;
    }
    if (made.stream) made.body["stream_options"] = {{"include_usage", true}};
    return made;
  }

  // The object with the usage of a reply, whole or streamed.
  static json last_object(const Question& asked, const HttpAnswer& answer) {
    if (!asked.stream) return answer.json();
    if (!answer.body.ends_with("data: [DONE]\n\n")) return {};
    std::istringstream lines(answer.body);
    json last;
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("data: {")) last = json::parse(line.substr(6), nullptr, false);
    return last;
  }

  // Every well-formed request gets its whole answer: the queue has room for all of them.
  void ask() {
    const Question asked = question();
    HttpClient client(port_);
    client.send(asked.text());
    const HttpAnswer answer = client.read(kPatienceSeconds);
    const json usage =
        answer.status == 200 ? last_object(asked, answer).value("usage", json()) : json();
    if (usage.is_object() && usage.value("completion_tokens", 0) == asked.tokens * asked.n)
      ++tally_.answered;
    else
      tally_.note(fmt::format("{} got {}: {}", asked.body.dump(), answer.status,
                              answer.body.substr(0, 200)));
  }

  // Closes the connection before the request is complete, before the first token, or in the middle.
  void leave() {
    const Question asked = question();
    HttpClient client(port_);
    const std::string text = asked.text();
    const unsigned when = below(3);
    client.send(when == 0 ? text.substr(0, below(static_cast<unsigned>(text.size()))) : text);
    if (when == 2) client.read_until("data: ", 0.1 * below(10) + 0.01);
    ++tally_.left;
  }

  // Asks for much and reads nothing; the server has to give up by itself.
  void never_read(Clock::time_point end) {
    HttpClient client(port_);
    client.set_receive_buffer(4096);
    client.send(HttpClient::post_text(
        "/v1/completions",
        R"({"prompt":"Once","max_tokens":100,"ignore_eos":true,"stream":true,"n":2,"logprobs":20})"));
    const auto until = Clock::now() + std::chrono::milliseconds(below(5000));
    while (Clock::now() < std::min(until, end))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++tally_.unread;
  }

  void send_nonsense() {
    HttpClient client(port_);
    client.send(malformed_request(random_));
    client.finish_sending();
    const HttpAnswer answer = client.read(kPatienceSeconds);
    // A refusal, or a close without one.
    if (answer.status != 0 && (answer.status < 400 || answer.status == 500 || answer.status > 505))
      tally_.note(fmt::format("nonsense got {}: {}", answer.status, answer.body.substr(0, 200)));
    ++tally_.refused;
  }

  void look_around() {
    HttpClient client(port_);
    constexpr const char* kPaths[] = {"/metrics", "/health", "/v1/models", "/", "/events"};
    const std::string path = kPaths[below(5)];
    client.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    if (path == "/events") {
      if (!client.read_until("event: ", kPatienceSeconds)) tally_.note("/events said nothing");
    } else if (client.read(kPatienceSeconds).status != 200) {
      tally_.note(path + " did not answer");
    }
    ++tally_.other;
  }

  const int port_;
  std::mt19937 random_;
  Tally& tally_;
};

// The mean of the samples from one tenth of a run to another.
double mean_mib(const std::vector<uint64_t>& samples, size_t from, size_t to) {
  const size_t first = samples.size() * from / 10, last = samples.size() * to / 10;
  uint64_t sum = 0;
  for (size_t i = first; i < last; ++i) sum += samples[i];
  return static_cast<double>(sum) / static_cast<double>(last - first) / (1 << 20);
}

TEST(ServerSoak, LeavesNothingBehind) {
  const int seconds = setting("HEARTH_SOAK_SECONDS", 8);
  const int clients = setting("HEARTH_SOAK_CLIENTS", 12);
  const int seed = setting("HEARTH_SOAK_SEED", 1);
  fmt::print("seed {}\n", seed);
  std::fflush(stdout);
  Serving server({"--kv-blocks", std::to_string(kPoolBlocks), "--max-backlog", "32KB"}, "");
  ASSERT_NE(server.port(), 0) << server.log();

  Tally tally;
  std::vector<uint64_t> resident;  // bytes, ten per second
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i)
    threads.emplace_back(
        [&, i] { Client(server.port(), static_cast<unsigned>(seed * 10007 + i), tally).run(end); });
  while (Clock::now() < end) {
    resident.push_back(server.resident_bytes());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  for (std::thread& thread : threads) thread.join();

  std::string tenths;  // of the run
  for (size_t i = 0; i < 10; ++i) tenths += fmt::format(" {:.1f}", mean_mib(resident, i, i + 1));
  const std::string did = fmt::format(
      "{} clients, {} s: {} answered, {} left, {} never read, {} nonsense, {} others; {} "
      "preemptions; resident MiB:{}",
      clients, seconds, tally.answered.load(), tally.left.load(), tally.unread.load(),
      tally.refused.load(), tally.other.load(),
      server.metric("hearth_preemptions_total{kind=\"recompute\"}") +
          server.metric("hearth_preemptions_total{kind=\"swap\"}"),
      tenths);
  fmt::print("{}\n", did);
  for (const std::string& wrong : tally.wrong) ADD_FAILURE() << wrong;
  EXPECT_GT(tally.answered, 0);

  // Nothing runs or waits, and every block is empty or belongs to the prefix cache alone.
  EXPECT_EQ(server.wait_for("hearth_requests_running", 0), 0u) << did;
  EXPECT_EQ(server.wait_for("hearth_requests_waiting", 0), 0u) << did;
  EXPECT_EQ(server.wait_for("hearth_kv_blocks_used", 0), 0u) << did;
  EXPECT_EQ(server.metric("hearth_kv_blocks_cached") + server.metric("hearth_kv_blocks_free"),
            static_cast<uint64_t>(kPoolBlocks));
  EXPECT_EQ(server.metric("hearth_requests_swapped"), 0u);
  uint64_t finished = 0;
  for (const char* reason : {"stop", "length", "cancelled", "time_limit", "error"})
    finished +=
        server.metric(fmt::format("hearth_requests_finished_total{{reason=\"{}\"}}", reason));
  EXPECT_EQ(finished, server.metric("hearth_requests_submitted_total"));
  EXPECT_EQ(server.metric("hearth_requests_finished_total{reason=\"error\"}"), 0u);
  EXPECT_EQ(server.get("/health").json()["status"], "ok");

  // The last third may not take much more than the one before it. In a long run that is a thousand
  // requests, so that a leak of ten kilobytes per request would show. A short run ends before
  // everything has been allocated that is allocated only once.
  if (seconds >= 60) {
    for (const std::atomic<int>* count :
         {&tally.left, &tally.unread, &tally.refused, &tally.other})
      EXPECT_GT(*count, 0) << did;
    const double before = mean_mib(resident, 4, 7), after = mean_mib(resident, 7, 10);
    EXPECT_LT(after, before + 8) << did;
  }
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server.log();
}

}  // namespace
}  // namespace hearth::testing
