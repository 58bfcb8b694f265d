// The contents of the trace file, and that it is valid JSON at any time.
#include "tools/replay/perfetto_trace.h"

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

// A temporary file.
std::string trace_path() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  return ::testing::TempDir() + "/perfetto_" + test->name() + ".json";
}

nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file, nullptr, false);
}

StepRecord make_record(uint64_t step) {
  StepRecord record{.step = step,
                    .submit_seconds = 10.0 + static_cast<double>(step),
                    .run_seconds = 0.5,
                    .end_seconds = 10.5 + static_cast<double>(step)};
  record.members = {{.request = 7,
                     .slot = 1,
                     .phase = StepPhase::kPrompt,
                     .first_position = 16,
                     .tokens = 20,
                     .samples = true},
                    {.request = 8, .slot = 0, .tokens = 1, .samples = true}};
  record.tokens = 21;
  record.padding_tokens = 3;
  record.counts = {
      .waiting = 4, .running = 2, .blocks_used = 5, .blocks_cached = 6, .blocks_free = 7};
  return record;
}

std::vector<nlohmann::json> events_of(const nlohmann::json& trace, const char* phase,
                                      const char* name) {
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& event : trace["traceEvents"])
    if (event["ph"] == phase && event["name"] == name) found.push_back(event);
  return found;
}

TEST(PerfettoTrace, HasTracksSlicesMarksAndCounters) {
  const std::string path = trace_path();
  const auto writer = PerfettoTrace::create(path);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  (*writer)->begin_run("static \"quoted\"", 2, 10);
  (*writer)->add(make_record(0));
  StepRecord second = make_record(1);
  second.members.pop_back();
  second.preempted_recompute = {8};
  second.prefix_hits = {{.request = 7, .tokens = 16}};
  (*writer)->add(second);
  ASSERT_TRUE((*writer)->finish().ok());

  const nlohmann::json trace = read_json(path);
  ASSERT_FALSE(trace.is_discarded());
  EXPECT_EQ(events_of(trace, "M", "process_name")[0]["args"]["name"], "static \"quoted\"");
  std::vector<std::string> tracks;
  for (const nlohmann::json& event : events_of(trace, "M", "thread_name"))
    tracks.push_back(event["args"]["name"]);
  EXPECT_THAT(tracks, ::testing::ElementsAre("GPU", "slot 0", "slot 1"));

  const auto steps = events_of(trace, "X", "step");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1]["ts"], 1e6);
  EXPECT_EQ(steps[1]["dur"], 5e5);
  EXPECT_EQ(steps[1]["args"]["padding_tokens"], 3);
  const auto prompts = events_of(trace, "X", "#7 prompt");
  ASSERT_EQ(prompts.size(), 2u);
  EXPECT_EQ(prompts[0]["tid"], 3);
  EXPECT_EQ(prompts[0]["args"]["request"], 7);
  EXPECT_EQ(prompts[0]["args"]["tokens"], 20);
  EXPECT_EQ(prompts[0]["args"]["position"], 16);
  ASSERT_EQ(events_of(trace, "X", "#8 decode").size(), 1u);

  const auto preempted = events_of(trace, "i", "preempted");
  ASSERT_EQ(preempted.size(), 1u);
  EXPECT_EQ(preempted[0]["tid"], 2);  // the slot that it had
  EXPECT_EQ(preempted[0]["args"]["request"], 8);
  EXPECT_EQ(events_of(trace, "i", "prefix hit").size(), 1u);
  const auto blocks = events_of(trace, "C", "KV blocks");
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0]["args"], nlohmann::json({{"used", 5}, {"cached", 6}, {"free", 7}}));
  EXPECT_EQ(events_of(trace, "C", "batch")[1]["args"]["sequences"], 1);
}

// Steps overlap on the host's clock, because the next one is submitted while this one runs. On the
// GPU they do not overlap, and neither do their slices.
TEST(PerfettoTrace, SlicesOfATrackDoNotOverlap) {
  const std::string path = trace_path();
  const auto writer = PerfettoTrace::create(path);
  (*writer)->begin_run("p", 2, 10);
  (*writer)->add(make_record(0));
  StepRecord early = make_record(1);
  early.submit_seconds = 10.1;
  (*writer)->add(early);
  ASSERT_TRUE((*writer)->finish().ok());
  const auto steps = events_of(read_json(path), "X", "step");
  EXPECT_EQ(steps[1]["ts"], 5e5);
  EXPECT_EQ(steps[1]["dur"], 1e6);
}

TEST(PerfettoTrace, IsValidBeforeItIsFinished) {
  const std::string path = trace_path();
  const auto writer = PerfettoTrace::create(path);
  EXPECT_FALSE(read_json(path).is_discarded());
  (*writer)->begin_run("p", 2, 0);
  size_t seen = 0, grown = 0;
  for (uint64_t step = 0; step < 3000; ++step) {
    (*writer)->add(make_record(step));
    if (step % 500 != 499) continue;
    const nlohmann::json trace = read_json(path);
    ASSERT_FALSE(trace.is_discarded()) << step;
    grown += trace["traceEvents"].size() > seen ? 1 : 0;
    seen = trace["traceEvents"].size();
  }
  EXPECT_GT(grown, 2u);
}

TEST(PerfettoTrace, EveryRunIsAProcess) {
  const std::string path = trace_path();
  {
    const auto writer = PerfettoTrace::create(path);
    (*writer)->begin_run("one", 2, 10);
    (*writer)->add(make_record(0));
    (*writer)->begin_run("two", 2, 10);
    (*writer)->add(make_record(0));
  }
  const auto steps = events_of(read_json(path), "X", "step");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_NE(steps[0]["pid"], steps[1]["pid"]);
  EXPECT_EQ(steps[0]["ts"], steps[1]["ts"]);
}

TEST(PerfettoTrace, AFileThatCannotBeWrittenIsAnError) {
  const auto writer = PerfettoTrace::create("no/such/folder/trace.json");
  ASSERT_FALSE(writer.ok());
  EXPECT_THAT(writer.error().message, HasSubstr("no/such/folder/trace.json"));
}

TEST(PerfettoTrace, AFullDiskIsAnError) {
  if (!std::ifstream("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const auto writer = PerfettoTrace::create("/dev/full");
  ASSERT_TRUE(writer.ok());
  (*writer)->begin_run("p", 2, 0);
  (*writer)->add(make_record(0));
  EXPECT_FALSE((*writer)->finish().ok());
  EXPECT_TRUE(std::ifstream("/dev/full")) << "it is not ours to remove";
}

// A limit on the size of files fails in the middle of a write, as a full disk does.
TEST(PerfettoTrace, APartialTraceIsRemovedWhenTheDiskIsFull) {
  const std::string path = trace_path();
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 400'000, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const auto writer = PerfettoTrace::create(path);
  ASSERT_TRUE(writer.ok());
  (*writer)->begin_run("p", 2, 0);
  for (uint64_t step = 0; step < 3000; ++step) (*writer)->add(make_record(step));
  const Status status = (*writer)->finish();
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("cannot write " + path));
  EXPECT_THAT(status.error().message, HasSubstr("the unfinished file was removed"));
  EXPECT_FALSE(std::ifstream(path));
}

}  // namespace
}  // namespace hearth::testing
