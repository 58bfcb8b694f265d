// What the timeline's cells say beyond their phase: padding, recomputed and forced tokens, guesses.
#include <gtest/gtest.h>

#include "tests/ui/data/step_records.h"
#include "ui/data/comparison.h"
#include "ui/data/timeline_data.h"

namespace hearth {
namespace {

using test::arrival;
using test::decode;
using test::prompt;
using test::step;
using test::view_of;

TEST(TimelineCells, PaddingIsInTheRowsWhereItHappensUntilTheBatchEnds) {
  TimelineData timeline;
  // Prompts of 8 and 5 tokens: the second row is padded with 3.
  StepRecord first = step(1, 1.0, {prompt(1, 0, 8, true), prompt(2, 0, 5, true)});
  first.padding_tokens = 3;
  first.arrived = {arrival(1, 0.9, 8), arrival(2, 0.9, 5)};
  StepRecord second = step(2, 1.1, {decode(1, 8), decode(2, 5)});
  second.finished = {2};
  // Request 2 has ended, but its row is computed along.
  StepRecord third = step(3, 1.2, {decode(1, 9)});
  third.padding_tokens = 1;
  StepRecord fourth = step(4, 1.3, {decode(1, 10)});
  fourth.padding_tokens = 1;
  fourth.finished = {1};
  // A new batch has its own padding.
  StepRecord fifth = step(5, 1.4, {prompt(3, 0, 4, true), prompt(4, 0, 2, true)});
  fifth.padding_tokens = 2;
  timeline.update(view_of({first, second, third, fourth, fifth}));
  const TimelineRow& ended = *timeline.find(2);
  EXPECT_EQ(ended.cell(0).padding, 3u);
  EXPECT_EQ(ended.cell(1).state, CellState::kDecode);
  EXPECT_EQ(ended.cell(2).state, CellState::kPadding);
  EXPECT_EQ(ended.cell(3).state, CellState::kPadding);
  EXPECT_EQ(ended.cell(4).state, CellState::kNone);
  EXPECT_EQ(timeline.find(1)->cell(0).padding, 0u);
  EXPECT_EQ(timeline.find(1)->cell(4).state, CellState::kNone);
  EXPECT_EQ(timeline.find(4)->cell(4).padding, 2u);
  EXPECT_EQ(timeline.count(CellState::kPadding), 0u);  // now
}

// With delivery=with-batch requests end together: the row is still open.
TEST(TimelineCells, PaddingOfARequestThatIsHeldBackIsHatchedToo) {
  TimelineData timeline;
  StepRecord first = step(1, 1.0, {prompt(1, 0, 4, true), prompt(2, 0, 4, true)});
  StepRecord second = step(2, 1.1, {decode(1, 4)});
  second.padding_tokens = 1;
  StepRecord third = step(3, 1.2, {decode(1, 5)});
  third.padding_tokens = 1;
  third.finished = {1, 2};
  timeline.update(view_of({first, second, third}));
  EXPECT_EQ(timeline.find(2)->cell(1).state, CellState::kPadding);
  EXPECT_EQ(timeline.find(2)->cell(2).state, CellState::kPadding);
}

// Every padding token of a real static batch is in some row.
TEST(TimelineCells, TheRowsAccountForAllPaddingOfAStaticBatch) {
  const Result<ComparisonPlan> plan =
      plan_comparison(comparison_for({}), "synthetic:rate=inf,n=12,prompt=8..60,gen=4..40,seed=3",
                      compared_limits());
  ASSERT_TRUE(plan.ok());
  const Result<Comparison> comparison = compare_modelled(ModelledDevice{}, *plan);
  ASSERT_TRUE(comparison.ok());
  TimelineData timeline;
  timeline.update(view_of(comparison->runs[0].steps));
  uint64_t padding = 0;
  for (uint64_t c = 0; c < timeline.end_column(); ++c) {
    uint64_t in_rows = 0;
    for (size_t i = 0; i < timeline.rows(); ++i) in_rows += timeline.row(i).cell(c).padding;
    EXPECT_EQ(in_rows, timeline.column(c).padding_tokens) << "step " << c;
    padding += in_rows;
  }
  EXPECT_GT(padding, 100u);
}

TEST(TimelineCells, GuessesAreAcceptedOrRejected) {
  TimelineData timeline;
  StepRecord first = step(1, 1.0, {prompt(1, 0, 8, true)});
  first.arrived = {arrival(1, 0.9, 8)};
  StepMember guessing = decode(1, 8);
  guessing.tokens = 5;
  guessing.proposed = 4;
  guessing.accepted = 3;
  StepRecord second = step(2, 1.1, {guessing});
  // Position 12 was computed for a rejected guess; computing it again is no recomputation.
  StepRecord third = step(3, 1.2, {decode(1, 12)});
  timeline.update(view_of({first, second, third}));
  const TimelineCell cell = timeline.find(1)->cell(1);
  EXPECT_EQ(cell.proposed, 4u);
  EXPECT_EQ(cell.accepted, 3u);
  EXPECT_EQ(cell.rejected(), 1u);
  EXPECT_EQ(cell.forced, 0u);
  EXPECT_EQ(timeline.find(1)->cell(2).recomputed, 0u);
}

TEST(TimelineCells, WithoutACacheEverythingIsRecomputed) {
  TimelineData timeline;
  StepRecord first = step(1, 1.0, {prompt(1, 0, 8, true)});
  first.arrived = {arrival(1, 0.9, 8)};
  timeline.update(view_of(
      {first, step(2, 1.1, {prompt(1, 0, 9, true)}), step(3, 1.2, {prompt(1, 0, 10, true)})}));
  EXPECT_EQ(timeline.find(1)->cell(0).recomputed, 0u);
  EXPECT_EQ(timeline.find(1)->cell(1).recomputed, 8u);
  EXPECT_EQ(timeline.find(1)->cell(2).recomputed, 9u);
  EXPECT_EQ(timeline.find(1)->cell(2).forced, 0u);
}

// The first chunk samples nothing, and the second ends with the token sampled before.
TEST(TimelineCells, RecomputingInChunksForcesNothing) {
  TimelineData timeline;
  StepRecord first = step(1, 1.0, {prompt(1, 0, 8, true)});
  first.arrived = {arrival(1, 0.9, 8)};
  timeline.update(
      view_of({first, step(2, 1.1, {prompt(1, 0, 5)}), step(3, 1.2, {prompt(1, 5, 4, true)})}));
  EXPECT_EQ(timeline.find(1)->cell(1).recomputed, 5u);
  EXPECT_EQ(timeline.find(1)->cell(2).recomputed, 3u);
  EXPECT_EQ(timeline.find(1)->cell(2).forced, 0u);
  EXPECT_FALSE(timeline.marks().forced);
}

// The last chunk that recomputes ends where the sequence was; the token sampled before comes next.
TEST(TimelineCells, AChunkThatEndsWhereTheSequenceWasForcesNothing) {
  TimelineData timeline;
  StepRecord first = step(1, 1.0, {prompt(1, 0, 8, true)});
  first.arrived = {arrival(1, 0.9, 8)};
  timeline.update(view_of({first, step(2, 1.1, {prompt(1, 0, 8)}), step(3, 1.2, {decode(1, 8)})}));
  EXPECT_EQ(timeline.find(1)->cell(1).recomputed, 8u);
  EXPECT_EQ(timeline.find(1)->cell(2).forced, 0u);
  EXPECT_FALSE(timeline.marks().forced);
}

// After a preemption by recompute, but not after a swap, what was there is computed again.
TEST(TimelineCells, RecomputeAndSwapDiffer) {
  TimelineData timeline;
  StepRecord first = step(1, 1.0, {prompt(1, 0, 8, true), prompt(2, 0, 8, true)});
  first.arrived = {arrival(1, 0.9, 8), arrival(2, 0.9, 8)};
  StepRecord second = step(2, 1.1, {});
  second.preempted_recompute = {1};
  second.preempted_swap = {2};
  second.blocks_swapped_out = 1;
  StepRecord third = step(3, 1.2, {prompt(1, 0, 9, true), decode(2, 8)});
  third.admitted = {1, 2};
  third.blocks_swapped_in = 1;
  timeline.update(view_of({first, second, third}));
  EXPECT_EQ(timeline.find(1)->cell(1).state, CellState::kPreempted);
  EXPECT_EQ(timeline.find(1)->cell(2).recomputed, 8u);
  EXPECT_EQ(timeline.find(1)->cell(2).forced, 0u);
  EXPECT_EQ(timeline.find(2)->cell(1).state, CellState::kSwapped);
  EXPECT_EQ(timeline.find(2)->cell(2).recomputed, 0u);
  EXPECT_EQ(timeline.column(1).blocks_swapped_out, 1u);
  EXPECT_EQ(timeline.column(2).blocks_swapped_in, 1u);
}

TEST(TimelineCells, TokensForcedByAGrammarAreTold) {
  TimelineData timeline;
  StepRecord first = step(1, 1.0, {prompt(1, 0, 8, true)});
  first.arrived = {arrival(1, 0.9, 8)};
  // The sampled token and four that the grammar appended.
  StepRecord second = step(2, 1.1, {prompt(1, 8, 5, true)});
  StepRecord third = step(3, 1.2, {decode(1, 13)});
  // The grammar begins with two tokens, before the model has sampled any.
  StepRecord fourth = step(4, 1.3, {prompt(2, 0, 12, true)});
  fourth.arrived = {arrival(2, 1.25, 10)};
  timeline.update(view_of({first, second, third, fourth}));
  EXPECT_EQ(timeline.find(1)->cell(0).forced, 0u);
  EXPECT_EQ(timeline.find(1)->cell(1).forced, 4u);
  EXPECT_EQ(timeline.find(1)->cell(2).forced, 0u);
  EXPECT_EQ(timeline.find(2)->cell(3).forced, 2u);
}

TEST(TimelineCells, AChangeOfThePolicyIsMarked) {
  TimelineData timeline;
  EngineView view = view_of({step(1, 1.0, {decode(1, 5)})});
  timeline.update(view);
  EXPECT_FALSE(timeline.column(0).policy_changed);
  view = view_of({step(2, 1.1, {decode(1, 6)}), step(3, 1.2, {decode(1, 7)})});
  view.policy = *named_policy("static");
  timeline.update(view);
  EXPECT_TRUE(timeline.column(1).policy_changed);
  EXPECT_FALSE(timeline.column(2).policy_changed);
}

}  // namespace
}  // namespace hearth
