// The last steps: kept, shown again, written to a file and read back.
#include "ui/data/recording.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/ui/data/step_records.h"
#include "ui/data/scrubber.h"
#include "ui/data/timeline_data.h"

namespace hearth {
namespace {

using test::arrival;
using test::decode;
using test::prompt;
using test::step;
using test::view_of;
using ::testing::HasSubstr;

// The view after step `number`, in which request 1 owns a block more every 16 steps.
EngineView recorded_view(uint64_t number, size_t blocks = 8) {
  StepRecord record = number == 1 ? step(1, 0.1, {prompt(1, 0, 8, true)})
                                  : step(number, 0.1 * static_cast<double>(number),
                                         {decode(1, static_cast<uint32_t>(6 + number))});
  if (number == 1) record.arrived = {arrival(1, 0.05, 8, 400)};
  record.counts.running = 1;
  record.counts.blocks_used = static_cast<uint32_t>(number / 16 + 1);
  EngineView view = view_of({record});
  view.source = "a model on a device";
  view.policy = *named_policy(number < 20 ? "static" : "continuous");
  view.limits.max_sequences = 4;
  view.totals.requests_finished = number / 3;
  view.totals.preemptions_swap = number;
  view.has_snapshot = true;
  view.snapshot_step = number;
  view.sequences = {{.id = 1, .state = SequenceState::kRunning, .priority = -3, .computed = 8}};
  view.blocks.resize(blocks);
  for (size_t i = 0; i <= number / 16 && i < blocks; ++i)
    view.blocks[i] = {.state = BlockState::kOwned,
                      .owner = 1,
                      .references = 1,
                      .filled = i < number / 16 ? 16u : static_cast<uint32_t>(number % 16),
                      .last_use = number};
  return view;
}

ViewHistory history_of(uint64_t steps) {
  ViewHistory history;
  for (uint64_t i = 1; i <= steps; ++i) history.add(recorded_view(i), 1);
  return history;
}

TEST(ViewHistory, ShowsWhatWasKnownAtAnyStep) {
  ViewHistory history = history_of(40);
  EXPECT_EQ(history.first(), 0u);
  ASSERT_EQ(history.end(), 40u);
  for (const uint64_t at : {40u, 3u, 17u, 39u, 1u}) {
    EngineView shown;
    history.show(at, shown);
    const EngineView was = recorded_view(at);
    EXPECT_EQ(shown.counts, was.counts) << at;
    EXPECT_EQ(shown.policy, was.policy) << at;
    EXPECT_EQ(shown.totals.requests_finished, was.totals.requests_finished) << at;
    EXPECT_EQ(shown.snapshot_step, at);
    ASSERT_EQ(shown.blocks.size(), was.blocks.size());
    for (size_t i = 0; i < was.blocks.size(); ++i)
      EXPECT_TRUE(same_block(shown.blocks[i], was.blocks[i])) << at << ": " << i;
  }
}

TEST(ViewHistory, KeepsTheLastTenThousandStepsAndAnIdleEngineAddsNothing) {
  ViewHistory history = history_of(ViewHistory::kSteps + 50);
  EXPECT_EQ(history.end() - history.first(), ViewHistory::kSteps);
  const size_t moments = history.moments().size();
  EngineView idle = recorded_view(ViewHistory::kSteps + 50);
  idle.new_steps.clear();
  for (int i = 0; i < 10; ++i) history.add(idle, 1);
  EXPECT_EQ(history.moments().size(), moments);
  EngineView oldest;
  history.show(history.first() + 1, oldest);
  EXPECT_EQ(oldest.snapshot_step, history.step(history.first()).step);
  history.add(recorded_view(1), 2);  // another engine
  EXPECT_EQ(history.end() - history.first(), 1u);
}

TEST(Scrubber, GoesBackAndForthAndReturnsToThePresent) {
  Scrubber scrubber;
  scrubber.history = history_of(30);
  uint64_t generation = 5;
  EngineView view;
  TimelineData timeline;
  const auto frame = [&](double seconds = 0) {
    scrubber.show(view, generation, seconds);
    timeline.update(view);
  };
  scrubber.step(-10);
  ASSERT_TRUE(scrubber.active());
  frame();
  EXPECT_EQ(timeline.end_column(), 20u);
  EXPECT_EQ(view.counts, recorded_view(20).counts);
  frame();
  EXPECT_TRUE(view.new_steps.empty());
  scrubber.step(1);
  const uint64_t before = generation;
  frame();
  EXPECT_EQ(timeline.end_column(), 21u);
  EXPECT_EQ(generation, before) << "going forward adds steps";
  scrubber.step(-2);
  frame();
  EXPECT_EQ(timeline.end_column(), 19u);
  EXPECT_EQ(view.policy, *named_policy("static"));
  scrubber.seek(1'000'000);
  frame();
  EXPECT_EQ(timeline.end_column(), 30u);
  scrubber.leave();
  EXPECT_FALSE(scrubber.active());
  EngineView live = recorded_view(30);
  scrubber.rejoin(live, generation);
  timeline.update(live);
  EXPECT_EQ(timeline.end_column(), 30u);
}

TEST(Scrubber, PlaysAtTheRecordedSpeed) {
  Scrubber scrubber;
  scrubber.history = history_of(30);
  uint64_t generation = 0;
  EngineView view;
  scrubber.play(true);  // from the beginning
  EXPECT_EQ(scrubber.position(), 1u);
  scrubber.show(view, generation, 1.01);  // ten steps per second
  EXPECT_EQ(scrubber.position(), 11u);
  scrubber.set_speed(2);
  scrubber.show(view, generation, 0.5);
  EXPECT_EQ(scrubber.position(), 21u);
  scrubber.show(view, generation, 10);
  EXPECT_EQ(scrubber.position(), 30u);
  EXPECT_FALSE(scrubber.playing());
}

class RecordingTest : public ::testing::Test {
 protected:
  std::string path_ = (std::filesystem::path(::testing::TempDir()) /
                       ("hearth_recording_" + std::to_string(getpid()) + ".json"))
                          .string();
  void TearDown() override { std::filesystem::remove(path_); }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
};

TEST_F(RecordingTest, ComesBackAsItWasAndIsATrace) {
  ViewHistory history = history_of(40);
  ASSERT_TRUE(write_recording(history, path_).ok());
  Result<ViewHistory> read = read_recording(path_);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->end() - read->first(), 40u);
  EXPECT_EQ(read->source(), "a model on a device");
  for (const uint64_t at : {1u, 19u, 20u, 40u}) {
    EngineView was, is;
    history.show(at, was);
    read->show(at, is);
    EXPECT_EQ(is.counts, was.counts);
    EXPECT_EQ(is.totals.requests_finished, was.totals.requests_finished);
    EXPECT_EQ(is.totals.preemptions_swap, was.totals.preemptions_swap);
    EXPECT_EQ(is.policy, was.policy);
    EXPECT_EQ(is.limits.max_sequences, 4u);
    EXPECT_EQ(is.now, was.now);
    ASSERT_EQ(is.sequences.size(), 1u);
    EXPECT_EQ(is.sequences[0].priority, -3);
    ASSERT_EQ(is.blocks.size(), was.blocks.size());
    for (size_t i = 0; i < was.blocks.size(); ++i)
      EXPECT_TRUE(same_block(is.blocks[i], was.blocks[i])) << at << ": " << i;
    EXPECT_EQ(read->step(at - 1).members.size(), history.step(at - 1).members.size());
  }
  const nlohmann::json trace = nlohmann::json::parse(text(), nullptr, false);
  ASSERT_FALSE(trace.is_discarded());
  bool named = false;
  for (const nlohmann::json& event : trace["traceEvents"]) named |= event["name"] == "#1 decode";
  EXPECT_TRUE(named) << "slices carry the request's name";
}

TEST_F(RecordingTest, DamagedFilesAreOneLine) {
  ASSERT_TRUE(write_recording(history_of(5), path_).ok());
  const std::string whole = text();
  for (const size_t length : {size_t{0}, size_t{1}, whole.size() / 3, whole.size() - 4}) {
    const Result<ViewHistory> read = parse_recording(whole.substr(0, length));
    ASSERT_FALSE(read.ok()) << length;
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
  const auto wrong = [&](const std::string& from, const std::string& to) {
    std::string changed = whole;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    const Result<ViewHistory> read = parse_recording(changed);
    return read.ok() ? std::string("fine") : read.error().message;
  };
  EXPECT_THAT(wrong("\"version\":1", "\"version\":9"), HasSubstr("another version"));
  EXPECT_THAT(wrong("\"blocks\":8", "\"blocks\":2"), HasSubstr("a block that cannot be"));
  EXPECT_THAT(wrong("\"state\":0", "\"state\":77"), HasSubstr("moment 1: an unknown state"));
  EXPECT_THAT(wrong("\"step\":3,\"submit", "\"step\":1,\"submit"), HasSubstr("not in order"));
  EXPECT_THAT(wrong("\"hearth\":{", "\"earth\":{"), HasSubstr("no events of the dashboard"));
  const Result<ViewHistory> missing = read_recording("nowhere.json");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, HasSubstr("nowhere.json"));
}

TEST_F(RecordingTest, AFileThatCannotBeWrittenIsReported) {
  const Status written = write_recording(history_of(2), "/no/such/folder/recording.json");
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().message, HasSubstr("/no/such/folder"));
}

}  // namespace
}  // namespace hearth
