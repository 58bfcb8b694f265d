// The mailbox alone: ids, queue places, the order of mail, controls on a clock moved by hand, and
// what wakes the engine thread up.
#include "engine/mailbox.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/engine_rooms.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr SchedulerLimits kMailboxLimits{.max_sequences = 2, .context = 64, .max_queue = 5};

class MailboxTest : public ::testing::Test {
 protected:
  static std::unique_ptr<ActiveRequest> request(RequestId id) {
    auto built = ActiveRequest::create({.prompt = {1, 2}, .max_tokens = 3},
                                       {.id = id, .limits = kMailboxLimits});
    EXPECT_TRUE(built.ok());
    return std::move(*built);
  }
  Status post(size_t count) { return post(mailbox_.reserve(count).value(), count); }
  Status post(Mailbox::QueuePlaces places, size_t count) {
    std::vector<std::unique_ptr<ActiveRequest>> requests;
    for (size_t i = 0; i < count; ++i) requests.push_back(request(places.first_id() + i));
    return mailbox_.post(std::move(places), std::move(requests));
  }
  bool may_begin() {
    mailbox_.collect(mail_, last_begin_);
    return mail_.may_begin_step;
  }
  // Whether wait() returns once `wake` was called on another thread. It hangs otherwise.
  void expect_woken_by(const Mailbox::Sleep& sleep, const std::function<void()>& wake) {
    mailbox_.collect(mail_, last_begin_);
    std::atomic<bool> woken = false;
    std::thread waker([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      EXPECT_FALSE(woken);
      wake();
    });
    mailbox_.wait(sleep);
    woken = true;
    waker.join();
  }

  HandClock clock_;
  Mailbox mailbox_{{.limits = kMailboxLimits}, /*start_paused=*/true, clock_};
  Mailbox::Mail mail_;
  EngineClock::time_point last_begin_ = clock_.now();
};

TEST_F(MailboxTest, PlacesAreTakenFromReservationToAdmission) {
  EXPECT_EQ(mailbox_.reserve(6).error().kind, ErrorKind::kInvalid);
  auto first = mailbox_.reserve(3);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(mailbox_.reserve(3).error().kind, ErrorKind::kBusy);
  ASSERT_TRUE(post(std::move(*first), 3).ok());
  EXPECT_EQ(mailbox_.reserve(3).error().kind, ErrorKind::kBusy) << "posted requests keep theirs";
  mailbox_.release_place();
  EXPECT_TRUE(mailbox_.reserve(3).ok());
}

TEST_F(MailboxTest, UnusedPlacesAreGivenBackButIdsAreNot) {
  const auto id = [&] { return mailbox_.reserve(5)->first_id(); };
  EXPECT_EQ(id(), 1u);
  EXPECT_EQ(id(), 6u);
}

TEST_F(MailboxTest, RequestsAreRefusedIfItDrainedWhileTheyWereBuilt) {
  auto places = mailbox_.reserve(5);
  mailbox_.drain();
  const Status status = post(std::move(*places), 5);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("shutting down"));
  mailbox_.undrain();
  EXPECT_TRUE(mailbox_.reserve(5).ok());
}

TEST_F(MailboxTest, MailIsCollectedOnceAndInOrder) {
  ASSERT_TRUE(post(2).ok());
  ASSERT_TRUE(post(1).ok());
  mailbox_.cancel(2);
  mailbox_.cancel(1);
  std::vector<int> ran;
  for (int i = 0; i < 3; ++i) mailbox_.post([&ran, i] { ran.push_back(i); });
  mailbox_.collect(mail_, last_begin_);
  ASSERT_EQ(mail_.requests.size(), 3u);
  for (RequestId id = 1; id <= 3; ++id) EXPECT_EQ(mail_.requests[id - 1]->id(), id);
  EXPECT_THAT(mail_.cancelled, ElementsAre(2, 1));
  for (const Mailbox::Task& task : mail_.tasks) task();
  EXPECT_THAT(ran, ElementsAre(0, 1, 2));
  mailbox_.collect(mail_, last_begin_);
  EXPECT_TRUE(mail_.requests.empty() && mail_.cancelled.empty() && mail_.tasks.empty());
}

TEST_F(MailboxTest, RunReturnsWhenTheTaskHasRun) {
  std::atomic<bool> ran = false;
  std::thread caller([&] {
    mailbox_.run([&] { ran = true; });
    EXPECT_TRUE(ran);
  });
  while (!ran) {
    mailbox_.wait({});
    mailbox_.collect(mail_, last_begin_);
    for (const Mailbox::Task& task : mail_.tasks) task();
  }
  caller.join();
}

TEST_F(MailboxTest, SettingsChangeTogetherWithTheirTask) {
  mailbox_.change_settings([](EngineSettings& settings) { settings.limits.max_sequences = 1; },
                           [] {});
  mailbox_.change_settings([](EngineSettings& settings) { settings.limits.pool_blocks = 7; },
                           nullptr);
  EXPECT_EQ(mailbox_.settings().limits.max_sequences, 1u);
  EXPECT_EQ(mailbox_.settings().limits.pool_blocks, 7u);
  mailbox_.collect(mail_, last_begin_);
  EXPECT_EQ(mail_.tasks.size(), 1u);
}

TEST_F(MailboxTest, SingleStepsAreUsedUp) {
  EXPECT_FALSE(may_begin());
  mailbox_.step_once();
  mailbox_.step_once();
  EXPECT_TRUE(may_begin());
  EXPECT_TRUE(may_begin());
  EXPECT_FALSE(may_begin());
  mailbox_.step_once();
  mailbox_.pause();
  EXPECT_FALSE(may_begin()) << "pausing again forgets them";
  mailbox_.resume();
  EXPECT_TRUE(may_begin());
  EXPECT_TRUE(may_begin());
}

TEST_F(MailboxTest, APaceSetsTheTimeBetweenSteps) {
  mailbox_.resume();
  mailbox_.set_pace(2);
  clock_.advance(0.49);
  EXPECT_FALSE(may_begin());
  clock_.advance(0.02);
  EXPECT_TRUE(may_begin());
  last_begin_ = clock_.now();
  EXPECT_FALSE(may_begin());
  mailbox_.set_pace(0);
  EXPECT_TRUE(may_begin());
}

TEST_F(MailboxTest, MailWakesAPausedEngine) {
  expect_woken_by({.has_work = true}, [&] { mailbox_.cancel(1); });
  expect_woken_by({.has_work = true}, [&] { mailbox_.post([] {}); });
  expect_woken_by({}, [&] { ASSERT_TRUE(post(1).ok()); });
  expect_woken_by({.has_work = true}, [&] { mailbox_.step_once(); });
  expect_woken_by({}, [&] { mailbox_.close(); });
}

// The pace was set while paused, and its next step is not due yet.
TEST_F(MailboxTest, ResumingWakesTheEngineEvenInSlowMotion) {
  mailbox_.set_pace(0.001);
  expect_woken_by({.has_work = true, .last_begin = last_begin_}, [&] { mailbox_.resume(); });
}

TEST_F(MailboxTest, WaitingEndsAtTheAlarmOrWhenAStepIsDue) {
  mailbox_.collect(mail_, last_begin_);
  mailbox_.wait({.alarm = clock_.now()});
  mailbox_.resume();
  mailbox_.collect(mail_, last_begin_);
  mailbox_.wait({.has_work = true, .last_begin = last_begin_});
  // The clock stands still: it is looked at again soon.
  mailbox_.wait({.alarm = clock_.now() + std::chrono::hours(1)});
}

TEST_F(MailboxTest, DrainWaitsForEveryEnd) {
  ASSERT_TRUE(post(2).ok());
  std::atomic<int> ended = 0;
  std::thread drainer([&] {
    mailbox_.drain();
    EXPECT_EQ(ended, 2);
  });
  while (mailbox_.state() != EngineState::kDraining) std::this_thread::yield();
  for (int i = 0; i < 2; ++i) {
    ++ended;
    mailbox_.count_end();
  }
  drainer.join();
}

TEST_F(MailboxTest, AFailureRefusesRequestsAndKeepsItsFirstReason) {
  EXPECT_EQ(mailbox_.state(), EngineState::kPaused);
  mailbox_.fail("the device is lost");
  mailbox_.fail("and again");
  EXPECT_EQ(mailbox_.state(), EngineState::kFailed);
  EXPECT_EQ(mailbox_.failure(), "the device is lost");
  const auto refused = mailbox_.reserve(1);
  EXPECT_EQ(refused.error().kind, ErrorKind::kDeviceLost);
  EXPECT_EQ(refused.error().message, "the device is lost");
}

TEST_F(MailboxTest, AClosedMailboxTakesNoCancellations) {
  mailbox_.close();
  mailbox_.cancel(1);
  mailbox_.collect(mail_, last_begin_);
  EXPECT_TRUE(mail_.closing);
  EXPECT_TRUE(mail_.cancelled.empty());
  EXPECT_FALSE(mailbox_.reserve(1).ok());
}

}  // namespace
}  // namespace hearth::testing
