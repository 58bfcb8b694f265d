// Token streams and the channels below them: order, callbacks without a lock, and what dropping a
// stream does.
#include "engine/token_stream.h"

#ifdef HEARTH_PARAMS_SAMPLING_H
#error "what front ends include must not bring in shader parameters"
#endif

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/mailbox.h"
#include "engine/token_channel.h"
#include "tests/support/hand_clock.h"

namespace hearth::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TokenChannelTest, GrowsInOrder) {
  TokenChannel channel(1, 3);
  for (TokenId id = 0; id < 2; ++id) channel.push({.id = id});
  EXPECT_EQ(channel.next()->id, 0u);
  for (TokenId id = 2; id < 20; ++id) channel.push({.id = id});
  channel.close({.reason = FinishReason::kLength});
  for (TokenId id = 1; id < 20; ++id) {
    EXPECT_FALSE(channel.ended());
    EXPECT_EQ(channel.next()->id, id);
  }
  EXPECT_TRUE(channel.ended());
  EXPECT_FALSE(channel.next(milliseconds(0)).has_value());
}

// Another thread can use the channel while the callback runs.
TEST(TokenChannelTest, CallbacksRunWithoutTheLock) {
  TokenChannel channel(1, 3);
  int calls = 0;
  const auto callback = [&] {
    ++calls;
    const auto other = std::async(std::launch::async, [&] { return channel.closed(); });
    EXPECT_EQ(other.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  };
  channel.set_notify(callback);
  EXPECT_EQ(calls, 0);
  channel.push({.id = 1});
  channel.set_notify(callback);  // there is something to read
  channel.close({});
  EXPECT_EQ(calls, 3);
}

TEST(TokenChannelTest, ACallbackMayReplaceItself) {
  TokenChannel channel(1, 3);
  int first = 0, second = 0;
  channel.set_notify([&] {
    ++first;
    channel.next(milliseconds(0));
    channel.set_notify([&] { ++second; });
  });
  channel.push({.id = 1});
  channel.push({.id = 2});
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

class TokenStreamTest : public ::testing::Test {
 protected:
  TokenStream stream(RequestId id) {
    channel_ = std::make_shared<TokenChannel>(id, 3);
    return TokenStream(channel_, mailbox_);
  }
  std::vector<RequestId> cancelled() {
    Mailbox::Mail mail;
    mailbox_->collect(mail, {});
    return mail.cancelled;
  }

  HandClock clock_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>(EngineSettings{}, true, clock_);
  std::shared_ptr<TokenChannel> channel_;  // of the newest stream
};

TEST_F(TokenStreamTest, DroppingAStreamLeavesACancellation) {
  {
    const TokenStream dropped = stream(7);
    EXPECT_THAT(cancelled(), IsEmpty());
  }
  EXPECT_THAT(cancelled(), ElementsAre(7));
}

TEST_F(TokenStreamTest, AfterTheEndThereIsNothingToCancel) {
  {
    const TokenStream unread = stream(7);
    channel_->push({.id = 1});
    channel_->close({});
  }
  EXPECT_THAT(cancelled(), IsEmpty());
}

TEST_F(TokenStreamTest, MovingKeepsTheRequestAndAssigningCancelsTheReplacedOne) {
  TokenStream first = stream(1);
  TokenStream second = stream(2);
  TokenStream moved = std::move(first);
  EXPECT_EQ(moved.request(), 1u);
  EXPECT_THAT(cancelled(), IsEmpty());
  moved = std::move(second);
  EXPECT_EQ(moved.request(), 2u);
  EXPECT_THAT(cancelled(), ElementsAre(1));
}

TEST_F(TokenStreamTest, AStreamMayOutliveTheMailbox) {
  TokenStream kept = stream(7);
  TokenStream dropped = stream(8);
  channel_->push({.id = 5});
  channel_->close({.reason = FinishReason::kCancelled});
  mailbox_.reset();
  EXPECT_EQ(dropped.next()->id, 5u);
  EXPECT_FALSE(dropped.next());
  EXPECT_EQ(dropped.end().reason, FinishReason::kCancelled);
}

TEST_F(TokenStreamTest, ADroppedStreamIsNotNotified) {
  int calls = 0;
  auto owned = std::make_shared<int>(1);
  {
    TokenStream dropped = stream(7);
    dropped.set_notify([&calls, owned] { ++calls; });
    channel_->push({.id = 1});
    EXPECT_EQ(calls, 1);
  }
  EXPECT_EQ(owned.use_count(), 1) << "the callback is destroyed";
  channel_->push({.id = 2});
  channel_->close({});
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace hearth::testing
