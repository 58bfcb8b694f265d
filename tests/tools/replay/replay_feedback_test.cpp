// What a replay tells the user besides its results: progress, what was not measured, and whether
// the machine was busy.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/replay/machine_load.h"
#include "tools/replay/replay_progress.h"
#include "tools/replay/replay_setting.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Trace two_requests() {
  return {.requests = {{.prompt_tokens = 5, .generated_tokens = 30},
                       {.prompt_tokens = 6, .generated_tokens = 10}}};
}

TEST(ReplayProgress, SaysWhichPolicyHowManyRequestsAndHowLongItTakes) {
  ProgressOutput::Clock::time_point now = {};
  std::vector<std::string> lines;
  ReplayProgress progress("static (1 of 4)", two_requests(),
                          {.style = ProgressOutput::Style::kLines,
                           .write = [&](std::string_view text) { lines.emplace_back(text); },
                           .columns = [] { return 80u; },
                           .now = [&] { return now; }});
  StepRecord record;
  record.sampled_tokens = 2;
  for (int i = 0; i < 10; ++i) progress.add(record);
  EXPECT_THAT(lines, ElementsAre());
  now += std::chrono::seconds(20);
  record.sampled_tokens = 0;
  record.finished = {2};
  progress.add(record);
  EXPECT_THAT(lines, ElementsAre("hearth: static (1 of 4): 50 %, 1 of 2 requests, about 20 s "
                                 "left\n"));
}

TEST(MachineLoad, ReadsTheKernelsCounters) {
  const auto stat = parse_proc_stat(
      "cpu  100 20 30 4000 500 6 7 8 90 9\n"
      "cpu0 50 10 15 2000 250 3 3 4 45 4\n"
      "cpu1 50 10 15 2000 250 3 4 4 45 5\n"
      "intr 1 2 3\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->busy_ticks, 100 + 20 + 30 + 6 + 7 + 8);
  EXPECT_EQ(stat->cores, 2);
  for (const char* wrong : {"", "intr 1 2 3\n", "cpu  1 2\ncpu0 1 2\n", "cpu  1 2 3 4 5 6 7 8\n"})
    EXPECT_FALSE(parse_proc_stat(wrong)) << wrong;
}

TEST(MachineLoad, CountersOfThisMachineGoUp) {
  const auto before = read_cpu_counters();
  if (!before) GTEST_SKIP() << "there is no /proc/stat here";
  volatile double work = 1;
  auto after = before;
  while (after && after->own - before->own < 0.05) {
    for (int i = 0; i < 100'000; ++i) work = work * 1.000001;
    after = read_cpu_counters();
  }
  ASSERT_TRUE(after);
  EXPECT_GT(after->wall, before->wall);
  EXPECT_GE(after->machine, before->machine);
  const CpuUse use = cpu_use(*before, *after);
  EXPECT_GT(use.own, 0);
  EXPECT_LE(use.own, 1);
}

TEST(MachineLoad, OthersAreWhatIsNotOurs) {
  const CpuCounters before{.wall = 100, .machine = 1000, .own = 50, .cores = 4};
  const CpuUse use = cpu_use(before, {.wall = 110, .machine = 1030, .own = 70, .cores = 4});
  EXPECT_DOUBLE_EQ(use.own, 0.5);
  EXPECT_DOUBLE_EQ(use.others, 0.25);
  // The machine's counters are coarse: ours may seem to be more than all.
  EXPECT_EQ(cpu_use(before, {.wall = 110, .machine = 1019, .own = 70, .cores = 4}).others, 0);
  EXPECT_EQ(cpu_use(before, before).others, 0);
}

TEST(MachineLoad, IsBusyOnlyIfOthersTookWhatWeMayHaveWanted) {
  struct Case {
    CpuUse use;
    bool busy;
  };
  for (const Case& one :
       {Case{{.own = 0.95, .others = 0.02}, false},  // a quiet desktop
        Case{{.own = 0.70, .others = 0.25}, true},   // lavapipe and a build
        Case{{.own = 0.05, .others = 0.40}, false},  // a GPU, and cores to spare
        Case{{.own = 0.05, .others = 0.90}, true}, Case{{.own = 0, .others = 0}, false}})
    EXPECT_EQ(was_busy(one.use), one.busy) << one.use.own << " " << one.use.others;
}

TEST(MachineLoad, TheWarningIsOneLineThatNamesThePoliciesItIsAbout) {
  const std::vector<PolicyLoad> loads = {{"static", {.own = 0.7, .others = 0.28}},
                                         {"packed", {.own = 0.97, .others = 0.01}},
                                         {"continuous", {.own = 0.5, .others = 0.5}}};
  const std::string warning = busy_warning(loads);
  EXPECT_THAT(warning, HasSubstr("28 % during static, 50 % during continuous"));
  EXPECT_THAT(warning, HasSubstr("--simulate"));
  EXPECT_THAT(warning, Not(HasSubstr("packed")));
  EXPECT_THAT(warning, Not(HasSubstr("\n")));
  EXPECT_EQ(busy_warning(std::span(loads).subspan(1, 1)), "");
  EXPECT_EQ(busy_warning({}), "");
}

TEST(ReplaySetting, TheHeadingSaysWhatItRanOn) {
  ReplaySetting setting{.trace = "synthetic:n=2", .model = "tiny", .device = "a card"};
  setting.limits = {.max_sequences = 4, .max_step_tokens = 64, .pool_blocks = 99};
  EXPECT_EQ(format_heading(setting, two_requests()),
            "tiny on a card\n"
            "At most 4 sequences and 64 tokens per step; 99 KV blocks of 16 tokens\n"
            "synthetic:n=2: 2 requests, 11 prompt tokens, 40 generated tokens\n");
  setting.simulated = true;
  setting.clipped = 1;
  setting.longest = 32;
  const std::string heading = format_heading(setting, two_requests());
  EXPECT_THAT(heading, HasSubstr("Simulation: tiny on a card, in virtual time\n"));
  EXPECT_THAT(heading, HasSubstr("1 of them cut to 32 tokens\n"));
}

TEST(ReplaySetting, TheFootSaysWhatWasNotMeasured) {
  EXPECT_EQ(
      format_overhead(
          {.loading_seconds = 2.04, .warm_up_seconds = 11.96, .kernels = 41, .buckets = 57}, 86.21),
      "Measured for 86.2 s. Not measured: 2.0 s to load the model, 12.0 s to warm up "
      "(57 buckets, 41 kernels).\n");
}

}  // namespace
}  // namespace hearth::testing
