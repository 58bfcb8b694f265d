// The request table alone: every request ends once, with a reason, at its time limit if it has one;
// queue places, counts and records follow.
#include "engine/request_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/engine_rooms.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr SchedulerLimits kTableLimits{
    .max_sequences = 4, .max_step_tokens = 32, .context = 128, .pool_blocks = 64, .max_queue = 5};

class RequestTableTest : public ::testing::Test {
 protected:
  TokenStream accepted(double time_limit_seconds = 0) {
    return rooms_.accepted(
        {.prompt = {1, 2, 3}, .max_tokens = 4, .time_limit_seconds = time_limit_seconds});
  }

  EngineRooms rooms_{kTableLimits};
  RequestTable& table_ = rooms_.requests;
  const Metrics& metrics_ = rooms_.publisher.metrics();
};

TEST_F(RequestTableTest, ARequestEndsOnceWithItsFirstReason) {
  TokenStream stream = accepted();
  const RequestId id = stream.request();
  ASSERT_NE(table_.find(id), nullptr);
  rooms_.clock.advance(2);
  table_.end(id, FinishReason::kError, "no memory");
  table_.end(id, FinishReason::kCancelled);
  table_.end(99, FinishReason::kCancelled);
  EXPECT_EQ(table_.find(id), nullptr);
  EXPECT_TRUE(table_.empty());
  EXPECT_TRUE(rooms_.scheduler.idle());
  ASSERT_TRUE(stream.ended());
  EXPECT_EQ(stream.end().reason, FinishReason::kError);
  EXPECT_EQ(stream.end().message, "no memory");
  EXPECT_DOUBLE_EQ(stream.end().times.finished, 2);
  EXPECT_EQ(metrics_.finished_error.value(), 1u);
  EXPECT_EQ(metrics_.finished_cancelled.value(), 0u);
}

TEST_F(RequestTableTest, AReaderThatSeesTheEndFindsItCountedAndItsPlaceFree) {
  std::vector<TokenStream> streams;
  for (int i = 0; i < 5; ++i) streams.push_back(accepted());
  EXPECT_FALSE(rooms_.mailbox->reserve(1).ok());
  uint64_t counted = 0, waiting = 99;
  bool free = false;
  streams[0].set_notify([&] {
    counted = metrics_.finished_cancelled.value();
    waiting = metrics_.waiting.value();
    free = rooms_.mailbox->reserve(1).ok();
  });
  table_.end(streams[0].request(), FinishReason::kCancelled);
  EXPECT_EQ(counted, 1u);
  EXPECT_EQ(waiting, 4u);
  EXPECT_TRUE(free);
}

TEST_F(RequestTableTest, AnAdmittedRequestGivesItsPlaceBackOnce) {
  std::vector<TokenStream> streams;
  for (int i = 0; i < 5; ++i) streams.push_back(accepted());
  ActiveRequest& request = table_.at(streams[0].request());
  rooms_.clock.advance(1);
  table_.admit(request, 0, rooms_.clock.now());
  rooms_.clock.advance(1);
  table_.admit(request, 0, rooms_.clock.now());  // after a preemption
  EXPECT_EQ(metrics_.queue_seconds.snapshot().count, 1u);
  EXPECT_DOUBLE_EQ(request.times().admitted, 1);
  table_.end(request.id(), FinishReason::kLength);
  EXPECT_TRUE(rooms_.mailbox->reserve(1).ok());
  EXPECT_FALSE(rooms_.mailbox->reserve(2).ok());
}

TEST_F(RequestTableTest, TimeLimitsEndRequestsInTheirOrder) {
  TokenStream none = accepted(), late = accepted(3), early = accepted(1), ended = accepted(0.5);
  table_.end(ended.request(), FinishReason::kCancelled);
  ASSERT_TRUE(table_.next_deadline());
  EXPECT_EQ(*table_.next_deadline(), rooms_.clock.now() + std::chrono::seconds(1));
  table_.end_expired(rooms_.clock.now());
  EXPECT_FALSE(early.ended());
  rooms_.clock.advance(2);
  table_.end_expired(rooms_.clock.now());
  ASSERT_TRUE(early.ended());
  EXPECT_EQ(early.end().reason, FinishReason::kTimeLimit);
  EXPECT_THAT(early.end().message, HasSubstr("time limit"));
  EXPECT_FALSE(late.ended());
  rooms_.clock.advance(100);
  table_.end_expired(rooms_.clock.now());
  EXPECT_TRUE(late.ended());
  EXPECT_FALSE(none.ended());
  EXPECT_FALSE(table_.next_deadline());
}

TEST_F(RequestTableTest, AnEndlessTimeLimitNeverPasses) {
  TokenStream stream = accepted(1e300);
  rooms_.clock.advance(1e6);
  table_.end_expired(rooms_.clock.now());
  EXPECT_FALSE(stream.ended());
}

// The pool was made smaller after submit() had checked the request.
TEST_F(RequestTableTest, ARequestThatNoLongerFitsEndsWithTheReason) {
  TokenStream stream = rooms_.post({.prompt = std::vector<TokenId>(40, 1), .max_tokens = 4});
  rooms_.scheduler.set_limits(4, 32, 1);
  rooms_.read_mail();
  ASSERT_TRUE(stream.ended());
  EXPECT_EQ(stream.end().reason, FinishReason::kError);
  EXPECT_THAT(stream.end().message, HasSubstr("blocks"));
  EXPECT_EQ(metrics_.waiting.value(), 0u);
  rooms_.mailbox->drain();
}

TEST_F(RequestTableTest, ADroppedStreamCancelsItsRequest) {
  TokenStream kept = accepted();
  static_cast<void>(accepted());
  rooms_.read_mail();
  EXPECT_EQ(metrics_.finished_cancelled.value(), 1u);
  EXPECT_NE(table_.find(kept.request()), nullptr);
}

TEST_F(RequestTableTest, ReportsArrivalsAndEndsOnce) {
  rooms_.clock.advance(1);
  TokenStream first = accepted(), second = accepted(), third = accepted();
  table_.end(first.request(), FinishReason::kLength);
  table_.end(second.request(), FinishReason::kCancelled);
  StepRecord record;
  table_.report(record);
  ASSERT_EQ(record.arrived.size(), 3u);
  EXPECT_DOUBLE_EQ(record.arrived[0].seconds, 1);
  EXPECT_EQ(record.arrived[0].prompt_tokens, 3u);
  EXPECT_EQ(record.arrived[0].max_tokens, 7u);
  EXPECT_THAT(record.finished, ElementsAre(first.request(), second.request()));
  EXPECT_THAT(record.cancelled, ElementsAre(second.request()));
  table_.report(record);
  EXPECT_THAT(record.arrived, IsEmpty());
  EXPECT_THAT(record.finished, IsEmpty());
  EXPECT_THAT(record.cancelled, IsEmpty());
}

TEST_F(RequestTableTest, AfterAllHaveEndedDrainReturns) {
  std::vector<TokenStream> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(accepted());
  table_.end_all(FinishReason::kCancelled, "the engine was shut down");
  rooms_.mailbox->drain();
  for (TokenStream& stream : streams) EXPECT_EQ(stream.end().message, "the engine was shut down");
}

}  // namespace
}  // namespace hearth::testing
