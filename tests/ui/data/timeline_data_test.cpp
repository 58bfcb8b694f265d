#include "ui/data/timeline_data.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/ui/data/step_records.h"

namespace hearth {
namespace {

using test::arrival;
using test::decode;
using test::prompt;
using test::step;
using test::view_of;

// A row's cells as letters: '.' is idle, ' ' is outside the row.
std::string letters(const TimelineData& timeline, RequestId request) {
  const TimelineRow* row = timeline.find(request);
  if (!row) return "no row";
  std::string text;
  for (uint64_t c = timeline.first_column(); c < timeline.end_column(); ++c) {
    const CellState state = row->cell(c).state;
    const char letter = cell_state_letter(state);
    text += state == CellState::kNone ? ' ' : letter ? letter : '.';
  }
  return text;
}

TEST(TimelineData, AnIdleEngineHasNeitherRowsNorColumns) {
  TimelineData timeline;
  timeline.update({});
  timeline.update(view_of({}));
  EXPECT_EQ(timeline.rows(), 0u);
  EXPECT_EQ(timeline.first_column(), timeline.end_column());
  EXPECT_EQ(timeline.find(1), nullptr);
}

TEST(TimelineData, ARequestFromArrivalToItsEnd) {
  TimelineData timeline;
  StepRecord first = step(10, 1.0, {prompt(1, 0, 8)});
  first.arrived = {arrival(1, 0.9), arrival(2, 0.95, 20, 30)};
  first.admitted = {1};
  StepRecord second = step(11, 1.1, {prompt(1, 8, 4, true)});
  StepRecord third = step(12, 1.2, {decode(1, 12), prompt(2, 16, 4, true)});
  third.admitted = {2};
  third.prefix_hits = {{.request = 2, .tokens = 16}};
  StepRecord fourth = step(13, 1.3, {decode(1, 13), decode(2, 20)});
  fourth.finished = {1};
  StepRecord fifth = step(14, 1.4, {decode(2, 21)});
  fifth.finished = {2};
  timeline.update(view_of({first, second, third, fourth}));
  timeline.update(view_of({fifth}));

  EXPECT_EQ(letters(timeline, 1), "PPDD ");
  EXPECT_EQ(letters(timeline, 2), "wwPDD");
  ASSERT_EQ(timeline.rows(), 2u);
  EXPECT_EQ(timeline.row(0).request(), 1u);
  EXPECT_TRUE(timeline.row(0).finished());
  EXPECT_EQ(timeline.row(1).prompt_tokens(), 20u);
  EXPECT_EQ(timeline.row(1).max_tokens(), 30u);
  const TimelineCell hit = timeline.find(2)->cell(2);
  EXPECT_EQ(hit.prefix_tokens, 16u);
  EXPECT_EQ(hit.first_position, 16u);
  EXPECT_EQ(hit.tokens, 4u);
  EXPECT_EQ(timeline.find(2)->cell(3).prefix_tokens, 0u);
  EXPECT_EQ(timeline.find(1)->cell(3).first_position, 13u);
  EXPECT_EQ(timeline.find(2)->cell(4).first_position, 21u);
}

TEST(TimelineData, ColumnsHaveTheStepsTimesAndCounts) {
  TimelineData timeline;
  StepRecord record = step(7, 2.0, {prompt(1, 0, 8), decode(2, 5)});
  record.padding_tokens = 3;
  record.counts.waiting = 4;
  EngineView view = view_of({record});
  view.limits.max_step_tokens = 64;
  timeline.update(view);
  const TimelineColumn& column = timeline.column(0);
  EXPECT_EQ(column.step, 7u);
  EXPECT_EQ(column.prompt_tokens, 8u);
  EXPECT_EQ(column.decode_tokens, 1u);
  EXPECT_EQ(column.tokens(), 12u);
  EXPECT_DOUBLE_EQ(column.padding_share(), 0.25);
  EXPECT_EQ(column.budget_tokens, 64u);
  EXPECT_EQ(column.members, 2u);
  EXPECT_EQ(column.waiting, 4u);
  EXPECT_DOUBLE_EQ(column.plan_seconds, 0.001);
  EXPECT_DOUBLE_EQ(column.run_seconds, 0.008);
  EXPECT_DOUBLE_EQ(column.wait_seconds, 0.006);
}

TEST(TimelineData, PreemptedAndSwappedUntilBackInABatch) {
  TimelineData timeline;
  StepRecord second = step(2, 0.2, {decode(1, 9)});
  second.preempted_recompute = {2};
  second.preempted_swap = {3};
  timeline.update(
      view_of({step(1, 0.1, {decode(1, 8), decode(2, 8), decode(3, 8)}), second,
               step(3, 0.3, {decode(1, 10)}), step(4, 0.4, {decode(1, 11), prompt(2, 0, 9, true)}),
               step(5, 0.5, {decode(2, 9), decode(3, 9)})}));
  EXPECT_EQ(letters(timeline, 1), "DDDD.");
  EXPECT_EQ(letters(timeline, 2), "DxxPD");
  EXPECT_EQ(letters(timeline, 3), "DsssD");
  EXPECT_EQ(timeline.count(CellState::kDecode), 2u);
  EXPECT_EQ(timeline.count(CellState::kIdle), 1u);
}

TEST(TimelineData, AnEndedRequestMayBeInTheStepInFlight) {
  TimelineData timeline;
  StepRecord first = step(1, 0.1, {decode(1, 8)});
  first.finished = {1};
  timeline.update(view_of({first, step(2, 0.2, {decode(1, 9), decode(2, 3)}),
                           step(3, 0.3, {decode(2, 4)}), step(4, 0.4, {decode(2, 5)})}));
  EXPECT_EQ(letters(timeline, 1), "DD  ");
  EXPECT_TRUE(timeline.find(1)->finished());
}

TEST(TimelineData, CancelledWhileWaiting) {
  TimelineData timeline;
  StepRecord first = step(1, 0.1, {decode(9, 8)});
  first.arrived = {arrival(10, 0.05), arrival(11, 0.05)};
  first.finished = {11};  // arrived and ended between two steps
  StepRecord third = step(3, 0.3, {decode(9, 10)});
  third.finished = {10};
  timeline.update(view_of({first, step(2, 0.2, {decode(9, 9)}), third}));
  EXPECT_EQ(letters(timeline, 10), "ww ");
  EXPECT_EQ(letters(timeline, 11), "w  ");
}

TEST(TimelineData, MissedStepsLeaveAGapAfterWhichRowsContinue) {
  TimelineData timeline;
  StepRecord first = step(1, 0.1, {decode(1, 8), decode(2, 8)});
  first.arrived = {arrival(3, 0.05)};
  timeline.update(view_of({first, step(2, 0.2, {decode(1, 9), decode(2, 9)})}));
  EngineView later =
      view_of({step(40, 4.0, {decode(4, 5)}), step(41, 4.1, {decode(1, 47), decode(4, 6)})});
  later.missed_steps = 37;
  timeline.update(later);
  EXPECT_EQ(timeline.missed_steps(), 37u);
  EXPECT_EQ(timeline.column(2).missed_before, 37u);
  EXPECT_EQ(timeline.column(3).missed_before, 0u);
  EXPECT_EQ(letters(timeline, 1), "DD D");
  EXPECT_EQ(letters(timeline, 2), "DD  ") << "may have ended: nothing mentions it";
  EXPECT_EQ(letters(timeline, 3), "ww  ");
  EXPECT_EQ(letters(timeline, 4), "  DD");

  // A snapshot tells which requests are still there.
  EngineView detailed = view_of({step(42, 4.2, {decode(1, 48), decode(4, 7)})});
  detailed.has_snapshot = true;
  detailed.snapshot_step = 42;
  detailed.sequences = {{.id = 1, .state = SequenceState::kRunning},
                        {.id = 4, .state = SequenceState::kRunning},
                        {.id = 3, .state = SequenceState::kWaiting, .prompt_tokens = 8}};
  timeline.update(detailed);
  EXPECT_EQ(letters(timeline, 3), "ww  w");
  EXPECT_EQ(letters(timeline, 2), "DD   ");
  EXPECT_EQ(letters(timeline, 1), "DD DD");
}

TEST(TimelineData, ANewEngineResetsEverything) {
  TimelineData timeline;
  timeline.update(view_of({step(5, 0.1, {decode(1, 8)}), step(6, 0.2, {decode(1, 9)})}));
  EngineView other = view_of({step(1, 0.1, {prompt(1, 0, 4)})});
  other.generation = 2;
  timeline.update(other);
  EXPECT_EQ(timeline.end_column(), 1u);
  EXPECT_EQ(letters(timeline, 1), "P");
}

TEST(TimelineData, RowsAreInOrderOfArrival) {
  TimelineData timeline;
  timeline.update(view_of({step(1, 0.1, {decode(7, 1), decode(3, 1), decode(5, 1)})}));
  ASSERT_EQ(timeline.rows(), 3u);
  EXPECT_EQ(timeline.row(0).request(), 3u);
  EXPECT_EQ(timeline.row(1).request(), 5u);
  EXPECT_EQ(timeline.row(2).request(), 7u);
}

TEST(TimelineData, OldColumnsAreDroppedWithTheirRows) {
  TimelineData timeline;
  StepRecord first = step(0, 0.0, {decode(1, 0), decode(2, 0)});
  first.finished = {1};
  timeline.update(view_of({first}));
  for (uint64_t i = 1; i <= TimelineData::kColumns + 10; ++i) {
    StepRecord record = step(i, 0.01 * static_cast<double>(i));
    // Request 2 alternates, so that it has many runs.
    if (i % 2 == 0) record.members = {decode(2, static_cast<uint32_t>(i))};
    timeline.update(view_of({record}));
  }
  EXPECT_EQ(timeline.end_column() - timeline.first_column(), TimelineData::kColumns);
  EXPECT_EQ(timeline.find(1), nullptr);
  ASSERT_NE(timeline.find(2), nullptr);
  EXPECT_EQ(letters(timeline, 2).substr(0, 4), ".D.D");
  EXPECT_LE(timeline.find(2)->runs().size(), TimelineData::kColumns + TimelineData::kColumns / 2);
  std::vector<size_t> seen;
  timeline.rows_between(timeline.first_column(), timeline.end_column(), seen);
  EXPECT_EQ(seen, (std::vector<size_t>{0}));
}

TEST(TimelineData, RowsBetweenTwoColumns) {
  TimelineData timeline;
  StepRecord first = step(1, 0.1, {decode(1, 8)});
  first.finished = {1};
  timeline.update(view_of({first, step(2, 0.2, {decode(2, 8)}), step(3, 0.3, {decode(2, 9)})}));
  std::vector<size_t> seen;
  timeline.rows_between(1, 3, seen);
  EXPECT_EQ(seen, (std::vector<size_t>{1}));
  timeline.rows_between(0, 1, seen);
  EXPECT_EQ(seen, (std::vector<size_t>{0}));
}

TEST(TimelineData, ALongRunTakesNoExtraMemory) {
  TimelineData timeline;
  for (uint64_t i = 0; i < 4096; ++i) {
    StepRecord record = step(i, 0.01 * static_cast<double>(i));
    for (RequestId id = 1; id <= 64; ++id)
      record.members.push_back(decode(id, static_cast<uint32_t>(i)));
    timeline.update(view_of({record}));
  }
  EXPECT_EQ(timeline.rows(), 64u);
  EXPECT_EQ(timeline.row(0).runs().size(), 1u);
}

}  // namespace
}  // namespace hearth
