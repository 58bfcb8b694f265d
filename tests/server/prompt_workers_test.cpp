// Prompts are made off the connection's thread, and the work ends when nobody needs it any more.
#include "tools/server/prompt_workers.h"

#include <mutex>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/served_stand_in.h"

namespace hearth::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

const auto kNever = [] { return false; };

// Would spin forever if nobody cancelled it.
void spin(const std::atomic<bool>& cancelled) {
  while (!cancelled) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(PromptWorkers, RunATaskOnAnotherThread) {
  PromptWorkers workers(1);
  std::thread::id id;
  EXPECT_TRUE(workers.run([&](const auto&) { id = std::this_thread::get_id(); }, kNever));
  EXPECT_NE(id, std::thread::id());
  EXPECT_NE(id, std::this_thread::get_id());
}

TEST(PromptWorkers, PassOnWhatATaskThrows) {
  PromptWorkers workers(1);
  const auto throws = [](const auto&) { throw std::runtime_error("no memory"); };
  EXPECT_THROW(workers.run(throws, kNever), std::runtime_error);
  EXPECT_TRUE(workers.run([](const auto&) {}, kNever)) << "and go on";
}

TEST(PromptWorkers, CancelWhatNobodyWaitsFor) {
  PromptWorkers workers(2);
  std::atomic<int> running = 0;
  std::atomic<bool> leave = false, started = false;
  const auto long_task = [&](const std::atomic<bool>& cancelled) {
    ++running;
    spin(cancelled);
    --running;
  };
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i)
    clients.emplace_back([&] { EXPECT_FALSE(workers.run(long_task, [&] { return !!leave; })); });
  ASSERT_TRUE(comes_true([&] { return running == 2; }));
  // Both threads are taken: the third task waits, and never starts because its client leaves.
  EXPECT_FALSE(workers.run([&](const auto&) { started = true; }, [] { return true; }));
  leave = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(running, 0);
  EXPECT_TRUE(workers.run([](const auto&) {}, kNever));
  EXPECT_FALSE(started);
}

// A chat template that would run until a limit of its own ends it.
class SlowTemplate : public ServedStandIn {
 protected:
  std::string chat_source() const override {
    return "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
  }
  std::string log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  static constexpr const char* kChat = "/v1/chat/completions";
  static constexpr const char* kBody = R"({"messages":[{"role":"user","content":"a"}]})";

  mutable std::mutex mutex_;
  std::string log_;
  const ScopedLogSink sink_{[this](std::string_view line) {
    const std::lock_guard lock(mutex_);
    log_ += line;
  }};
};

TEST_F(SlowTemplate, EndsWithTheRequestsTimeLimit) {
  serve({.port = 0, .request_seconds = 0.05});
  const HttpAnswer answer = post(kChat, kBody);
  // The template's own limit would be a 400.
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("time_limit"));
}

TEST_F(SlowTemplate, EndsWhenItsClientLeaves) {
  {
    HttpClient client(server_->port());
    client.send(HttpClient::post_text(kChat, kBody));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(comes_true([&] { return !log().empty(); }));
  EXPECT_THAT(log(), HasSubstr(" 499 ")) << "the template ran to its own end";
}

TEST_F(SlowTemplate, EndsWhenTheServerShutsDown) {
  HttpClient client(server_->port());
  client.send(HttpClient::post_text(kChat, kBody));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  server_->drain(0.3);
  const HttpAnswer answer = client.read();
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.json()["error"]["code"], "draining");
}

}  // namespace
}  // namespace hearth::testing
