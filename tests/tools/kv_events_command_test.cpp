// hearth serve --kv-events, from a request to a subscriber.
#include <chrono>
#include <regex>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/serving.h"
#ifdef HEARTH_HAS_ZMQ
#include "tests/tools/kv_events/subscriber.h"
#endif

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

#ifdef HEARTH_HAS_ZMQ

// A prompt that is sent twice is computed and stored once, and its tokens can be read back.
TEST(ServedKvEvents, TellWhichBlocksThePromptFilled) {
  Serving server({"--kv-events", "@tcp://127.0.0.1:*", "--kv-events-replay", "tcp://127.0.0.1:*",
                  "--kv-events-format", "arrays", "--name", "small"});
  ASSERT_NE(server.port(), 0) << server.log();
  std::smatch match;
  const std::regex line(R"(KV events at (tcp://\S+), replay at (tcp://\S+))");
  std::string log;
  for (int i = 0; i < 500 && !std::regex_search(log = server.log(), match, line); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_FALSE(match.empty()) << log;
  EventSubscriber subscriber(match[1], match[2]);

  nlohmann::json prompt = nlohmann::json::array();
  for (int i = 0; i < 40; ++i) prompt.push_back(100 + i);
  const std::string body = nlohmann::json{{"prompt", prompt}, {"max_tokens", 1}}.dump();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(server.post("/v1/completions", body).status, 200);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (subscriber.blocks.size() < 2 && std::chrono::steady_clock::now() < deadline)
    subscriber.catch_up();

  ASSERT_EQ(subscriber.blocks.size(), 2u);  // 40 tokens fill two blocks of 16
  std::vector<uint32_t> tokens;
  nlohmann::json parent;  // null
  while (tokens.size() < 32) {
    const size_t before = tokens.size();
    for (const auto& [hash, block] : subscriber.blocks) {
      if (block.parent != parent) continue;
      tokens.insert(tokens.end(), block.tokens.begin(), block.tokens.end());
      parent = hash;
      break;
    }
    ASSERT_GT(tokens.size(), before) << "no chain from a block without a parent";
  }
  EXPECT_EQ(nlohmann::json(tokens),
            nlohmann::json(std::vector<int>(prompt.begin(), prompt.begin() + 32)));
}

TEST(ServedKvEvents, AnEndpointInUseIsOneLine) {
  Serving first({"--kv-events", "@tcp://127.0.0.1:*"});
  ASSERT_NE(first.port(), 0) << first.log();
  std::smatch match;
  std::string log;
  const std::regex line(R"(KV events at (tcp://\S+))");
  for (int i = 0; i < 500 && !std::regex_search(log = first.log(), match, line); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_FALSE(match.empty()) << log;
  Serving second({"--kv-events", "@" + match[1].str()});
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(second.log(), HasSubstr("KV events: cannot bind " + match[1].str()));
}

#else

TEST(ServedKvEvents, ABuildWithoutZeroMqRefusesTheFlagInOneLine) {
  Serving server({"--kv-events", "tcp://*:5557"});
  EXPECT_EQ(server.wait(), 1);
  EXPECT_THAT(server.log(), HasSubstr("libzmq3-dev"));
}

#endif

}  // namespace
}  // namespace hearth::testing
