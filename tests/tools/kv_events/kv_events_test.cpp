// KV events from the scheduler to a subscriber: the subscriber knows exactly which blocks can be
// found, also if it loses batches.
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/scheduling/simulated_engine.h"
#include "tools/kv_events/block_log.h"
#include "tools/kv_events/event_batch.h"
#include "tools/kv_events/event_history.h"
#include "tools/kv_events/event_publisher.h"
#ifdef HEARTH_HAS_ZMQ
#include "tests/tools/kv_events/subscriber.h"
#endif

namespace hearth::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Kind = BlockEvent::Kind;
using BlockOfTokens = std::array<TokenId, kTokensPerBlock>;

BlockOfTokens tokens_from(TokenId first) {
  BlockOfTokens tokens;
  for (TokenId& token : tokens) token = first++;
  return tokens;
}

BlockHash hash_number(uint64_t number) { return {.low = number, .high = ~number}; }

TEST(BlockLog, KeepsTheOrderAndTellsFirstBlocks) {
  BlockLog log(8);
  log.stored(hash_number(1), root_hash(0), tokens_from(100));
  log.stored(hash_number(2), hash_number(1), tokens_from(200));
  log.stored(hash_number(3), root_hash(7), tokens_from(300));  // of a request with a salt
  log.removed(hash_number(2));
  log.cleared();
  std::vector<BlockEvent> events;
  log.take(2, events);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(events[0].first);
  EXPECT_EQ(events[0].tokens, tokens_from(100));
  EXPECT_EQ(events[1].parent, 1u);
  EXPECT_FALSE(events[1].first);
  log.take(100, events);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_FALSE(events[2].first) << "nobody else shares it, so it is not everybody's first block";
  EXPECT_EQ(events[3], (BlockEvent{.kind = Kind::kRemoved, .hash = 2}));
  EXPECT_EQ(events[4].kind, Kind::kCleared);
  EXPECT_EQ(log.overflows(), 0u);
}

TEST(BlockLog, AFullLogForgetsEverythingAndSaysSo) {
  BlockLog log(4);
  for (uint64_t i = 1; i <= 6; ++i) log.removed(hash_number(i));
  std::vector<BlockEvent> events;
  log.take(100, events);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].kind, Kind::kCleared);
  EXPECT_EQ(events[1].hash, 5u);
  EXPECT_EQ(events[2].hash, 6u);
  EXPECT_EQ(log.overflows(), 1u);
}

TEST(EventHistory, IsBoundedInNumberAndInBytes) {
  EventHistory history(3, 100);
  for (uint64_t i = 0; i < 5; ++i) history.add(i, std::vector<uint8_t>(10));
  EXPECT_EQ(history.batches().front().sequence, 2u);
  EXPECT_EQ(history.batches().size(), 3u);
  history.add(5, std::vector<uint8_t>(95));
  EXPECT_EQ(history.batches().size(), 1u);
  history.add(6, std::vector<uint8_t>(200));
  EXPECT_EQ(history.batches().front().sequence, 6u);
}

std::vector<BlockEvent> some_events() {
  const auto stored = [](uint64_t hash, uint64_t parent, TokenId first) {
    return BlockEvent{.kind = Kind::kStored,
                      .first = parent == 0,
                      .hash = hash,
                      .parent = parent,
                      .tokens = tokens_from(first)};
  };
  return {stored(0xffffffffffffffff, 0, 10),
          stored(2, 0xffffffffffffffff, 26),
          stored(3, 1, 42),
          {.kind = Kind::kRemoved, .hash = 5},
          {.kind = Kind::kRemoved, .hash = 6},
          {.kind = Kind::kCleared},
          {.kind = Kind::kCleared}};
}

json decoded(EventEncoding encoding) {
  return json::from_msgpack(encode_batch(some_events(), encoding, 1789095808.8378847));
}

// As vLLM has written them since June 2026.
TEST(EventBatch, Maps) {
  const json batch = decoded(EventEncoding::kMaps);
  ASSERT_EQ(batch.size(), 3u);
  EXPECT_EQ(batch[0], 1789095808.8378847);
  EXPECT_EQ(batch[2], 0);
  ASSERT_EQ(batch[1].size(), 5u);
  const json& chain = batch[1][0];
  EXPECT_EQ(chain["type"], "BlockStored");
  EXPECT_EQ(chain["block_hashes"], (json{0xffffffffffffffff, 2}));
  EXPECT_TRUE(chain["parent_block_hash"].is_null());
  EXPECT_EQ(chain["token_ids"].size(), 32u);
  EXPECT_EQ(chain["token_ids"][31], 41);
  EXPECT_EQ(chain["block_size"], 16);
  EXPECT_EQ(chain["medium"], "GPU");
  EXPECT_EQ(batch[1][1]["parent_block_hash"], 1);
  EXPECT_EQ(batch[1][2],
            (json{{"type", "BlockRemoved"}, {"block_hashes", {5, 6}}, {"medium", "GPU"}}));
  EXPECT_EQ(batch[1][3], (json{{"type", "AllBlocksCleared"}}));
}

// As SGLang writes them, and vLLM did before.
TEST(EventBatch, Arrays) {
  const json batch = decoded(EventEncoding::kArrays);
  ASSERT_EQ(batch[1].size(), 5u);
  const json& chain = batch[1][0];
  ASSERT_EQ(chain.size(), 7u);
  EXPECT_EQ(chain[0], "BlockStored");
  EXPECT_EQ(chain[1], (json{0xffffffffffffffff, 2}));
  EXPECT_TRUE(chain[2].is_null());
  EXPECT_EQ(chain[3].size(), 32u);
  EXPECT_EQ(chain[4], 16);
  EXPECT_TRUE(chain[5].is_null());
  EXPECT_EQ(chain[6], "GPU");
  EXPECT_EQ(batch[1][2], (json{"BlockRemoved", {5, 6}, "GPU"}));
  EXPECT_EQ(batch[1][4], json::array({"AllBlocksCleared"}));
}

// Follows the calls without a log.
class FollowingObserver : public BlockObserver {
 public:
  void stored(const BlockHash& hash, const BlockHash& parent,
              std::span<const TokenId, kTokensPerBlock> tokens) override {
    EXPECT_EQ(chain_hash(parent, tokens), hash);
    EXPECT_TRUE(hashes.insert(hash.low).second);
    ++events;
  }
  void removed(const BlockHash& hash) override {
    EXPECT_EQ(hashes.erase(hash.low), 1u);
    ++events;
  }
  void cleared() override {
    hashes.clear();
    ++events;
    ++clears;
  }
  std::set<uint64_t> hashes;
  uint64_t events = 0, clears = 0;
};

std::set<uint64_t> findable_blocks(const Scheduler& scheduler) {
  std::vector<BlockView> views;
  scheduler.view_blocks(views);
  std::set<uint64_t> hashes;
  for (const BlockView& view : views)
    if (view.hash != 0) hashes.insert(view.hash);
  return hashes;
}

// A small pool under a load of prompts that share beginnings: blocks are stored, evicted, forgotten
// and withheld all the time.
class BusyCache {
 public:
  BusyCache() : engine_(kLimits, Policy{}) {}

  Scheduler& scheduler() { return engine_.scheduler; }
  void step() {
    while (engine_.live() < 12) add_request();
    const auto problem = engine_.step();
    ASSERT_FALSE(problem) << *problem;
    if (++steps_ % 97 == 0) {
      const uint32_t pool = steps_ % 2 == 0 ? kLimits.pool_blocks : kLimits.pool_blocks / 4;
      scheduler().set_limits(kLimits.max_sequences, kLimits.max_step_tokens, pool);
    }
    if (steps_ % 613 == 0) scheduler().forget_prefixes();
  }

 private:
  static constexpr SchedulerLimits kLimits{
      .max_sequences = 8, .max_step_tokens = 256, .context = 256, .pool_blocks = 128};

  void add_request() {
    // One of a few beginnings, then something of its own.
    const TokenId shared = static_cast<TokenId>(random_() % 6);
    const size_t length = 1 + random_() % 150;
    std::vector<TokenId> prompt;
    for (size_t i = 0; i < length; ++i)
      prompt.push_back(1 + (i < 64 ? shared * 1000 + static_cast<TokenId>(i)
                                   : static_cast<TokenId>(random_() % 1000)));
    engine_.add(next_++, {.prompt = prompt,
                          .max_new_tokens = static_cast<uint32_t>(1 + random_() % 40),
                          .cache_salt = random_() % 5 == 0 ? next_ : 0});
  }

  test::SimulatedEngine engine_;
  std::mt19937 random_{7};
  RequestId next_ = 1;
  uint64_t steps_ = 0;
};

TEST(BlockObserver, KnowsTheSetOfFindableBlocksAfterEveryStep) {
  FollowingObserver observer;
  BusyCache cache;
  cache.scheduler().observe_blocks(&observer);
  while (observer.events < 10'000) {
    ASSERT_NO_FATAL_FAILURE(cache.step());
    ASSERT_EQ(observer.hashes, findable_blocks(cache.scheduler()));
  }
  EXPECT_GT(observer.clears, 0u);
}

TEST(EventPublisher, ABuildWithoutZeroMqSaysSoInOneLine) {
#ifdef HEARTH_HAS_ZMQ
  const auto wrong = EventPublisher::create({.endpoint = "tcp://*:not-a-port"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message, HasSubstr("cannot bind tcp://*:not-a-port"));
#else
  const auto refused = EventPublisher::create({.endpoint = "tcp://*:5557"});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("libzmq3-dev"));
  EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
#endif
}

#ifdef HEARTH_HAS_ZMQ

struct Published {
  explicit Published(EventPublisherOptions options = {}) {
    options.endpoint = "@tcp://127.0.0.1:*";
    options.replay_endpoint = "tcp://127.0.0.1:*";
    auto made = EventPublisher::create(options);
    EXPECT_TRUE(made.ok()) << made.error().message;
    publisher = std::move(made).value();
    cache.scheduler().observe_blocks(&publisher->log());
  }

  BusyCache cache;
  std::unique_ptr<EventPublisher> publisher;
};

std::set<uint64_t> known_to(const EventSubscriber& subscriber) {
  std::set<uint64_t> hashes;
  for (const auto& [hash, block] : subscriber.blocks) hashes.insert(hash);
  return hashes;
}

// Loses a batch in four; the last ones also, so that a last request for a replay is needed.
void rebuild_with_losses(EventEncoding encoding) {
  Published published({.encoding = encoding});
  EventSubscriber subscriber(published.publisher->endpoint(),
                             published.publisher->replay_endpoint());
  published.publisher->start("kv@here@model");
  std::mt19937 random(3);
  const auto loses = [&](uint64_t) { return random() % 4 == 0; };
  while (subscriber.events < 10'000) {
    for (int i = 0; i < 16; ++i) ASSERT_NO_FATAL_FAILURE(published.cache.step());
    while (subscriber.follow(2, loses)) {
    }
  }
  while (subscriber.follow(100, [](uint64_t) { return true; })) {
  }
  subscriber.catch_up();
  EXPECT_EQ(known_to(subscriber), findable_blocks(published.cache.scheduler()));
  EXPECT_EQ(subscriber.topic, "kv@here@model");
  EXPECT_EQ(subscriber.missing, 0u);
  EXPECT_EQ(subscriber.unknown_removed, 0u);
  EXPECT_GT(subscriber.lost, 10u);
  EXPECT_GT(subscriber.replays, 10u);
  EXPECT_GT(subscriber.clears, 0u);
  EXPECT_EQ(published.publisher->log().overflows(), 0u);
}

TEST(EventPublisher, ASubscriberThatLosesMapsRebuildsTheExactSet) {
  rebuild_with_losses(EventEncoding::kMaps);
}

TEST(EventPublisher, ASubscriberThatLosesArraysRebuildsTheExactSet) {
  rebuild_with_losses(EventEncoding::kArrays);
}

// A replay from the start is as good as having been there.
TEST(EventPublisher, ALateSubscriberRebuildsTheExactSetAndItsTokens) {
  Published published;
  published.publisher->start("");
  for (int i = 0; i < 60; ++i) ASSERT_NO_FATAL_FAILURE(published.cache.step());
  const std::set<uint64_t> expected = findable_blocks(published.cache.scheduler());
  EventSubscriber subscriber(published.publisher->endpoint(),
                             published.publisher->replay_endpoint());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (known_to(subscriber) != expected && std::chrono::steady_clock::now() < deadline)
    subscriber.catch_up();
  EXPECT_EQ(known_to(subscriber), expected);
  // Every parent that is known is the block before: together they are a prefix of some prompt.
  size_t with_parent = 0;
  for (const auto& [hash, block] : subscriber.blocks) {
    ASSERT_EQ(block.tokens.size(), kTokensPerBlock);
    with_parent += block.parent.is_number() && subscriber.blocks.contains(block.parent);
  }
  EXPECT_GT(with_parent, 10u);
}

// What is not kept any more cannot be replayed, and the numbers say how much is missing.
TEST(EventPublisher, AnOldBatchIsGone) {
  Published published({.kept_batches = 2});
  published.publisher->start("");
  EventSubscriber subscriber(published.publisher->endpoint(),
                             published.publisher->replay_endpoint());
  for (int i = 0; i < 30; ++i) {
    ASSERT_NO_FATAL_FAILURE(published.cache.step());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  // Batches may have arrived already; they are ignored.
  subscriber.catch_up();
  EXPECT_GT(subscriber.missing, 0u);
  EXPECT_LE(subscriber.batches, 2u);
}

// A subscriber that does not read: the server continues, and the subscriber catches up later.
TEST(EventPublisher, ASubscriberThatDoesNotReadHoldsNobodyUp) {
  Published published;
  EventSubscriber asleep(published.publisher->endpoint(), published.publisher->replay_endpoint(),
                         1);
  published.publisher->start("");
  for (int i = 0; i < 800; ++i) ASSERT_NO_FATAL_FAILURE(published.cache.step());
  const std::set<uint64_t> expected = findable_blocks(published.cache.scheduler());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (known_to(asleep) != expected && std::chrono::steady_clock::now() < deadline)
    asleep.catch_up();
  EXPECT_EQ(known_to(asleep), expected);
  EXPECT_EQ(asleep.missing, 0u);
}

// The log is full before it is read: the subscriber knows less, but nothing that is wrong.
TEST(EventPublisher, AfterAnOverflowTheSubscriberKnowsNothingWrong) {
  Published published({.log_events = 64});
  for (int i = 0; i < 200; ++i) ASSERT_NO_FATAL_FAILURE(published.cache.step());
  EXPECT_GT(published.publisher->log().overflows(), 0u);
  published.publisher->start("");
  EventSubscriber subscriber(published.publisher->endpoint(),
                             published.publisher->replay_endpoint());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (subscriber.batches == 0 && std::chrono::steady_clock::now() < deadline)
    subscriber.catch_up();
  EXPECT_GT(subscriber.clears, 0u);
  const std::set<uint64_t> findable = findable_blocks(published.cache.scheduler());
  for (const uint64_t hash : known_to(subscriber)) EXPECT_TRUE(findable.contains(hash));
}

#endif  // HEARTH_HAS_ZMQ

}  // namespace
}  // namespace hearth::testing
