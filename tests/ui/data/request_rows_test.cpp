#include "ui/data/request_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;

// Step n runs from second n to n + 1.
StepRecord step(uint64_t number) {
  StepRecord record;
  record.step = number;
  record.begin_seconds = static_cast<double>(number);
  record.end_seconds = record.begin_seconds + 1;
  return record;
}

StepMember prompt(RequestId id, uint32_t first, uint32_t tokens, bool samples = false) {
  return {.request = id,
          .phase = StepPhase::kPrompt,
          .first_position = first,
          .tokens = tokens,
          .samples = samples};
}
StepMember decode(RequestId id, uint32_t position) {
  return {.request = id,
          .phase = StepPhase::kDecode,
          .first_position = position,
          .tokens = 1,
          .samples = true};
}

class RequestRowsTest : public ::testing::Test {
 protected:
  void show(std::vector<StepRecord> steps) {
    EngineView view;
    view.connected = true;
    view.generation = generation;
    view.new_steps = std::move(steps);
    table.update(view);
  }
  void snapshot(uint64_t at_step, std::vector<SequenceView> sequences, double now = 50) {
    EngineView view;
    view.connected = view.has_snapshot = true;
    view.generation = generation;
    view.snapshot_step = at_step;
    view.now = now;
    view.sequences = std::move(sequences);
    table.update(view);
  }
  std::vector<RequestId> order(RequestColumn column, bool descending) const {
    std::vector<RequestId> ids;
    for (const RequestRow* row : table.sorted(column, descending, 100)) ids.push_back(row->id);
    return ids;
  }

  RequestRows table;
  uint64_t generation = 1;
};

TEST_F(RequestRowsTest, ARequestFromItsArrivalToItsEnd) {
  StepRecord first = step(1);
  first.arrived = {{.request = 7, .seconds = 0.25, .prompt_tokens = 40, .max_tokens = 50}};
  show({first});
  const RequestRow* row = table.find(7);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->state, RequestState::kWaiting);
  EXPECT_EQ(row->known, 40u);
  EXPECT_EQ(row->progress(), 0);
  EXPECT_DOUBLE_EQ(row->waited(1.25), 1);
  EXPECT_LT(row->ttft(), 0);
  EXPECT_LT(row->running(9), 0);

  StepRecord second = step(2);
  second.admitted = {7};
  second.prefix_hits = {{.request = 7, .tokens = 16}};
  second.members = {prompt(7, 16, 14)};
  show({second});
  EXPECT_EQ(row->state, RequestState::kPrefill);
  EXPECT_EQ(row->computed, 30u);
  EXPECT_EQ(row->cached_tokens, 16u);
  EXPECT_FLOAT_EQ(row->progress(), 0.6f);
  EXPECT_DOUBLE_EQ(row->waited(9), 1.75);

  StepRecord third = step(3), fourth = step(4);
  third.members = {prompt(7, 30, 10, /*samples=*/true)};
  fourth.members = {decode(7, 40)};
  show({third, fourth});
  EXPECT_EQ(row->state, RequestState::kDecode);
  EXPECT_EQ(row->computed, 41u);
  EXPECT_EQ(row->known, 42u);
  EXPECT_EQ(row->generated(), 2u);
  EXPECT_DOUBLE_EQ(row->ttft(), 3.75);
  EXPECT_DOUBLE_EQ(row->running(10), 8);

  StepRecord fifth = step(5);
  fifth.finished = {7};
  show({fifth});
  EXPECT_EQ(row->state, RequestState::kFinished);
  EXPECT_DOUBLE_EQ(row->running(10), 4);
  EXPECT_DOUBLE_EQ(row->total(10), 5.75);
  EXPECT_EQ(row->progress(), 1);
  EXPECT_EQ(table.count(RequestState::kFinished), 1u);
}

TEST_F(RequestRowsTest, PreemptionAndSwapAreShown) {
  StepRecord first = step(1), second = step(2), third = step(3);
  first.admitted = {1, 2};
  first.members = {prompt(1, 0, 8, true), prompt(2, 0, 8, true)};
  second.preempted_recompute = {1};
  second.preempted_swap = {2};
  show({first, second});
  EXPECT_EQ(table.find(1)->state, RequestState::kPreempted);
  EXPECT_EQ(table.find(1)->computed, 0u);
  EXPECT_EQ(table.find(1)->preemptions, 1u);
  EXPECT_EQ(table.find(2)->state, RequestState::kSwapped);
  EXPECT_EQ(table.find(2)->computed, 8u);
  third.admitted = {1, 2};
  third.members = {prompt(1, 0, 9), decode(2, 8)};
  show({third});
  EXPECT_EQ(table.find(1)->state, RequestState::kPrefill);
  EXPECT_EQ(table.find(2)->state, RequestState::kDecode);
  EXPECT_DOUBLE_EQ(table.find(1)->admitted, 1) << "the first admission counts";
}

TEST_F(RequestRowsTest, SnapshotsAddWhatStepsLack) {
  snapshot(
      4, {{.id = 3,
           .state = SequenceState::kRunning,
           .priority = 2,
           .prompt_tokens = 10,
           .committed = 13,
           .computed = 12,
           .max_tokens = 20,
           .blocks = 1,
           .preemptions = 1},
          {.id = 4,
           .state = SequenceState::kWaiting,
           .prompt_tokens = 30,
           .committed = 30,
           .max_tokens = 60},
          {.id = 5, .state = SequenceState::kSwapped, .prompt_tokens = 5, .committed = 9, .blocks = 2},
          {.id = 6, .state = SequenceState::kWaiting, .committed = 9, .preemptions = 2}});
  EXPECT_EQ(table.find(3)->state, RequestState::kDecode);
  EXPECT_EQ(table.find(3)->priority, 2);
  EXPECT_EQ(table.find(3)->blocks, 1u);
  EXPECT_EQ(table.find(3)->generated(), 3u);
  EXPECT_EQ(table.find(4)->state, RequestState::kWaiting);
  EXPECT_EQ(table.find(5)->state, RequestState::kSwapped);
  EXPECT_EQ(table.find(6)->state, RequestState::kPreempted);
  // The exact arrival time comes with a later step.
  EXPECT_DOUBLE_EQ(table.find(4)->arrived, 50);
  StepRecord later = step(5);
  later.arrived = {{.request = 4, .seconds = 1.5, .prompt_tokens = 30, .max_tokens = 60}};
  show({later});
  EXPECT_DOUBLE_EQ(table.find(4)->arrived, 1.5);
}

TEST_F(RequestRowsTest, AnOldSnapshotDoesNotUndoANewerStep) {
  StepRecord first = step(8);
  first.admitted = {1};
  first.members = {prompt(1, 0, 20, true)};
  show({first});
  snapshot(7, {{.id = 1, .state = SequenceState::kWaiting, .prompt_tokens = 20, .committed = 20}});
  EXPECT_EQ(table.find(1)->state, RequestState::kPrefill);
  snapshot(7, {});
  EXPECT_EQ(table.find(1)->state, RequestState::kPrefill);
  // A newer snapshot does: the request ended, and no step since has reported it.
  snapshot(8, {}, 12);
  EXPECT_EQ(table.find(1)->state, RequestState::kFinished);
  EXPECT_DOUBLE_EQ(table.find(1)->ended, 9);
}

TEST_F(RequestRowsTest, ARequestMissingFromASnapshotReturnsWithItsNextStep) {
  StepRecord first = step(1), second = step(2);
  first.admitted = {1};
  first.members = {prompt(1, 0, 20, true)};
  show({first});
  snapshot(1, {});
  EXPECT_EQ(table.find(1)->state, RequestState::kFinished);
  second.members = {decode(1, 20)};
  show({second});
  EXPECT_EQ(table.find(1)->state, RequestState::kDecode);
  EXPECT_LT(table.find(1)->ended, 0);
}

TEST_F(RequestRowsTest, CancelledByTheUserOrBeforeItRan) {
  StepRecord first = step(1), second = step(2);
  first.arrived = {{.request = 1, .seconds = 0.5, .prompt_tokens = 4, .max_tokens = 8},
                   {.request = 2, .seconds = 0.5, .prompt_tokens = 4, .max_tokens = 8},
                   {.request = 3, .seconds = 0.5, .prompt_tokens = 4, .max_tokens = 8}};
  first.admitted = {1, 3};
  first.members = {prompt(1, 0, 4, true), prompt(3, 0, 4, true)};
  show({first});
  table.note_cancel(1);
  table.note_priority(3, 5);
  EXPECT_EQ(table.find(3)->priority, 5);
  second.finished = {1, 2, 3};
  show({second});
  EXPECT_EQ(table.find(1)->state, RequestState::kCancelled);
  EXPECT_EQ(table.find(2)->state, RequestState::kCancelled);
  EXPECT_EQ(table.find(3)->state, RequestState::kFinished);
}

TEST_F(RequestRowsTest, SortsByEveryColumn) {
  StepRecord first = step(1), second = step(2);
  first.arrived = {{.request = 1, .seconds = 0.5, .prompt_tokens = 4, .max_tokens = 100},
                   {.request = 2, .seconds = 0.25, .prompt_tokens = 4, .max_tokens = 5},
                   {.request = 3, .seconds = 0.75, .prompt_tokens = 4, .max_tokens = 20}};
  first.admitted = {2};
  first.members = {prompt(2, 0, 4, true)};
  second.admitted = {1};
  second.members = {prompt(1, 0, 4, true)};
  show({first, second});
  EXPECT_THAT(order(RequestColumn::kId, false), ElementsAre(1, 2, 3));
  EXPECT_THAT(order(RequestColumn::kId, true), ElementsAre(3, 2, 1));
  EXPECT_THAT(order(RequestColumn::kArrived, false), ElementsAre(2, 1, 3));
  EXPECT_THAT(order(RequestColumn::kProgress, true), ElementsAre(2, 1, 3));
  EXPECT_THAT(order(RequestColumn::kState, false), ElementsAre(1, 2, 3));
  EXPECT_THAT(order(RequestColumn::kWaited, true), ElementsAre(3, 1, 2));
  EXPECT_THAT(order(RequestColumn::kTtft, true), ElementsAre(1, 2, 3));
  EXPECT_THAT(order(RequestColumn::kRunning, true), ElementsAre(2, 1, 3));
  table.note_priority(3, 4);
  EXPECT_THAT(order(RequestColumn::kPriority, true), ElementsAre(3, 1, 2));
}

TEST_F(RequestRowsTest, KeepsAllCurrentRequestsAndTheLast200Ended) {
  StepRecord all = step(1), ends = step(2);
  all.members = {prompt(1, 0, 4, true)};
  for (RequestId id = 2; id <= 301; ++id) {
    all.members.push_back(prompt(id, 0, 4, true));
    ends.finished.push_back(id);
  }
  show({all, ends});
  EXPECT_EQ(table.size(), 201u);
  EXPECT_NE(table.find(1), nullptr);
  EXPECT_EQ(table.find(101), nullptr);
  EXPECT_NE(table.find(102), nullptr);
  generation = 2;
  show({});
  EXPECT_EQ(table.size(), 0u) << "a new engine";
}

// Also if the cancellation came from elsewhere: a stopped answer, or a client that disconnected.
TEST_F(RequestRowsTest, ACancelledRequestIsNotFinished) {
  StepRecord first = step(1), second = step(2);
  first.members = {decode(1, 9), decode(2, 9)};
  second.members = {decode(1, 10)};
  second.finished = {1, 2};
  second.cancelled = {2};
  show({first, second});
  EXPECT_EQ(table.find(1)->state, RequestState::kFinished);
  EXPECT_EQ(table.find(2)->state, RequestState::kCancelled);
}

// The step after the end was already in flight when the request ended.
TEST_F(RequestRowsTest, AStepInFlightDoesNotReviveAnEndedRequest) {
  StepRecord first = step(1), second = step(2), third = step(3);
  first.arrived = {{.request = 7, .seconds = 0.25, .prompt_tokens = 4, .max_tokens = 50}};
  first.admitted = {7};
  first.members = {prompt(7, 0, 4, true)};
  second.members = {decode(7, 4)};
  second.finished = {7};
  third.members = {decode(7, 5)};
  show({first, second, third});
  EXPECT_EQ(table.find(7)->state, RequestState::kFinished);
  EXPECT_EQ(table.find(7)->ended, 3);
  EXPECT_EQ(table.find(7)->generated(), 2u);
  EXPECT_EQ(table.count(RequestState::kDecode), 0u);
}

TEST_F(RequestRowsTest, APreemptedRequestFindingItsOwnBlocksIsNoPrefixHit) {
  StepRecord first = step(1), second = step(2), third = step(3);
  first.prefix_hits = {{.request = 7, .tokens = 32}};
  second.preempted_recompute = {7};
  third.prefix_hits = {{.request = 7, .tokens = 48}};
  show({first, second, third});
  EXPECT_EQ(table.find(7)->cached_tokens, 32u);
}

// Without snapshots, a request may have ended during missed steps.
TEST_F(RequestRowsTest, ARequestNotSeenAfterAGapHasEnded) {
  StepRecord before = step(1), after = step(9);
  before.members = {decode(1, 9), decode(2, 9)};
  after.members = {decode(2, 16)};
  show({before});
  EngineView view;
  view.connected = true;
  view.generation = generation;
  view.missed_steps = 7;
  view.new_steps = {after};
  table.update(view);
  EXPECT_EQ(table.find(1)->state, RequestState::kFinished);
  EXPECT_EQ(table.find(2)->state, RequestState::kDecode);
  EXPECT_LT(table.find(2)->ended, 0);
}

}  // namespace
}  // namespace hearth::testing
