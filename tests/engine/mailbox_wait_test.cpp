// Refusals by expected wait, and when to try again.
#include <gtest/gtest.h>

#include "engine/mailbox.h"
#include "tests/support/engine_rooms.h"

namespace hearth::testing {
namespace {

class MailboxWaitTest : public ::testing::Test {
 protected:
  // A queue with `left` requests in it, of which one left it per second.
  void fill_queue(size_t left) {
    for (size_t i = 0; i < left + 10; ++i) places_.push_back(mailbox_.reserve(1).value());
    for (int i = 0; i < 10; ++i) {
      clock_.advance(1);
      mailbox_.release_place();
    }
  }
  void allow_waits(uint32_t limit_ms) {
    mailbox_.change_settings(
        [&](EngineSettings& settings) { settings.policy.max_wait_ms = limit_ms; }, nullptr);
  }

  HandClock clock_;
  Mailbox mailbox_{{.limits = {.context = 64, .max_queue = 100}}, /*start_paused=*/true, clock_};
  std::vector<Mailbox::QueuePlaces> places_;
};

TEST_F(MailboxWaitTest, ARequestThatWouldWaitTooLongIsRefused) {
  fill_queue(20);
  EXPECT_TRUE(mailbox_.reserve(1).ok()) << "nothing is refused unless there is a limit";
  allow_waits(25'000);
  EXPECT_TRUE(mailbox_.reserve(1).ok());
  allow_waits(15'000);
  const Result<Mailbox::QueuePlaces> refused = mailbox_.reserve(1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kBusy);
  EXPECT_EQ(refused.error().message,
            "20 requests are waiting, so a new one would wait about 20.0 s; the limit is 15 s. Try "
            "again later.");
  EXPECT_NEAR(mailbox_.retry_seconds(), 5, 1e-6);
  // Once enough requests have left the queue, a new one is accepted.
  for (int i = 0; i < 5; ++i) {
    clock_.advance(1);
    mailbox_.release_place();
  }
  EXPECT_TRUE(mailbox_.reserve(1).ok());
  EXPECT_EQ(mailbox_.retry_seconds(), 1);
}

TEST_F(MailboxWaitTest, AFullQueueSaysWhenATenthOfItHasLeft) {
  fill_queue(90);
  for (size_t i = 0; i < 10; ++i) places_.push_back(mailbox_.reserve(1).value());
  EXPECT_EQ(mailbox_.reserve(1).error().kind, ErrorKind::kBusy);
  EXPECT_NEAR(mailbox_.retry_seconds(), 10, 1e-6);
}

// Nobody has left the queue yet, so there is no rate; but it has stood still for a while.
TEST_F(MailboxWaitTest, AQueueThatStandsStillSaysForHowLongItHas) {
  for (int i = 0; i < 100; ++i) places_.push_back(mailbox_.reserve(1).value());
  EXPECT_EQ(mailbox_.reserve(1).error().kind, ErrorKind::kBusy);
  EXPECT_EQ(mailbox_.retry_seconds(), 1);
  clock_.advance(22);
  EXPECT_NEAR(mailbox_.retry_seconds(), 22, 1e-6);
  mailbox_.release_place();
  EXPECT_EQ(mailbox_.retry_seconds(), 1);
}

TEST_F(MailboxWaitTest, ATemporaryQueueBeforeAnythingIsKnownIsNotRefused) {
  allow_waits(1);
  for (int i = 0; i < 50; ++i) places_.push_back(mailbox_.reserve(1).value());
  EXPECT_TRUE(mailbox_.reserve(1).ok());
}

}  // namespace
}  // namespace hearth::testing
