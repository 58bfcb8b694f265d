#include "ui/feeds/engine_feed.h"

#include <gtest/gtest.h>

#include "tests/ui/data/step_records.h"

namespace hearth {
namespace {

// The snapshot was taken while step 5 ran, which then ended request 2. Request 3 was cancelled in
// the queue.
TEST(EngineFeed, ASequenceThatEndedSinceTheSnapshotIsNotCountedAsRunning) {
  StepRecord record = test::step(5, 1.0, {test::decode(1, 8), test::decode(2, 9)});
  record.finished = {2, 3};
  EngineView view = test::view_of({record});
  view.has_snapshot = true;
  view.snapshot_step = 5;
  view.counts = {.waiting = 1, .running = 2};
  view.sequences = {{.id = 1, .state = SequenceState::kRunning},
                    {.id = 2, .state = SequenceState::kRunning},
                    {.id = 3, .state = SequenceState::kWaiting}};
  note_ended(view);
  EXPECT_EQ(view.counts.running, 1u);
  EXPECT_EQ(view.counts.waiting, 0u);
  EXPECT_EQ(view.counts.ending, 2u);
  // The next frame may have the same snapshot, and the record is not counted twice.
  note_ended(view);
  EXPECT_EQ(view.counts.running, 1u);
}

}  // namespace
}  // namespace hearth
