// The arithmetic of reports, compared with numbers worked out by hand.
#include "tools/replay/replay_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/scheduling/policy.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Summary, PercentilesAreInterpolated) {
  const std::vector<double> values = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(percentile(values, 0), 1);
  EXPECT_DOUBLE_EQ(percentile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(percentile(values, 0.9), 3.7);
  EXPECT_DOUBLE_EQ(percentile(values, 1), 4);
  EXPECT_EQ(percentile({}, 0.5), 0);
}

TEST(Summary, ValuesMayBeInAnyOrder) {
  std::vector<double> values;
  for (int i = 0; i <= 100; ++i) values.push_back((i * 37) % 101);  // 0 to 100, shuffled
  const Summary summary = summarize(values);
  EXPECT_DOUBLE_EQ(summary.mean, 50);
  EXPECT_DOUBLE_EQ(summary.p50, 50);
  EXPECT_DOUBLE_EQ(summary.p90, 90);
  EXPECT_DOUBLE_EQ(summary.p99, 99);
  EXPECT_EQ(summarize({}).p99, 0);
  EXPECT_EQ(summarize({7}).p99, 7);
}

TEST(ServiceGoal, IsParsed) {
  const auto goal = parse_service_goal("tbt=0.25,ttft=2");
  ASSERT_TRUE(goal.ok());
  EXPECT_EQ(goal->time_to_first_token, 2);
  EXPECT_EQ(goal->time_between_tokens, 0.25);
  EXPECT_EQ(parse_service_goal("ttft=3")->time_between_tokens, 0.1);
  for (const char* wrong : {"ttft", "ttft=", "ttft=0", "ttft=-1", "e2e=3", "ttft=1;tbt=2"}) {
    const auto result = parse_service_goal(wrong);
    ASSERT_FALSE(result.ok()) << wrong;
    EXPECT_THAT(result.error().message, HasSubstr("ttft=1,tbt=0.1"));
  }
}

TEST(ServiceGoal, EveryTokenCounts) {
  const ServiceGoal goal{.time_to_first_token = 1, .time_between_tokens = 0.5};
  EXPECT_TRUE(goal.met_by({.arrival = 10, .token_times = {11, 11.5, 12}}));
  EXPECT_FALSE(goal.met_by({.arrival = 9.5, .token_times = {11, 11.5, 12}}));
  EXPECT_FALSE(goal.met_by({.arrival = 10, .token_times = {11, 11.25, 12}}));
  EXPECT_TRUE(goal.met_by({.arrival = 10, .token_times = {11}}));
  EXPECT_FALSE(goal.met_by({.arrival = 10}));
  EXPECT_FALSE(goal.met_by({.arrival = 10, .token_times = {11}, .failed = true}));
}

// Two requests in two steps of 1 s and 3 s.
StepTally two_steps() {
  StepTally tally;
  StepRecord first{.run_seconds = 1, .end_seconds = 101};
  first.members = {{.request = 1, .tokens = 20, .samples = true}, {.request = 2, .tokens = 10}};
  first.tokens = 30;
  first.padding_tokens = 10;
  first.counts = {.running = 2, .blocks_used = 4, .kv_tokens = 30, .wasted_tokens = 34};
  StepRecord second{.run_seconds = 3, .end_seconds = 104};
  second.members = {{.request = 1, .tokens = 1, .samples = true}};
  second.tokens = 1;
  second.padding_tokens = 7;
  second.preempted_recompute = {2};
  second.counts = {
      .running = 1, .blocks_used = 2, .blocks_shared = 1, .kv_tokens = 21, .wasted_tokens = 11};
  tally.add(first);
  tally.add(second);
  return tally;
}

TEST(StepTally, StepsAreWeightedByTheirTime) {
  const StepTally tally = two_steps();
  const StepUse& use = tally.use();
  EXPECT_EQ(use.steps, 2u);
  EXPECT_EQ(use.preemptions_recompute, 1u);
  EXPECT_DOUBLE_EQ(use.padding_share(), 17.0 / 48);
  EXPECT_DOUBLE_EQ(use.busy_share(99), 4.0 / 5);
  EXPECT_DOUBLE_EQ(use.occupancy(4), (2 * 1 + 1 * 3) / (4.0 * 4));
  EXPECT_DOUBLE_EQ(use.kv_used_share(8), (4 * 1 + 2 * 3) / (8.0 * 4));
  EXPECT_DOUBLE_EQ(use.kv_shared_share(), 3.0 / 10);
  EXPECT_DOUBLE_EQ(use.kv_waste_share(), (34 + 33) / (30.0 + 34 + 63 + 33));
  EXPECT_DOUBLE_EQ(use.wasted_tokens_per_sequence(), (34 + 33) / (2.0 + 3));
}

TEST(StepTally, TokensAreSampledAtTheEndOfTheirStep) {
  StepTally tally = two_steps();
  EXPECT_THAT(tally.take_token_times(1), ::testing::ElementsAre(101, 104));
  EXPECT_THAT(tally.take_token_times(2), ::testing::IsEmpty());
}

ReplayRun small_run() {
  ReplayRun run;
  run.begin = 100;
  run.requests = {{.arrival = 100, .token_times = {101, 101.5, 103}},
                  {.arrival = 102, .token_times = {104}},
                  {.arrival = 103, .token_times = {}, .failed = true}};
  run.cached_tokens = {0, 16, 0};
  run.prompt_tokens = 50;
  run.query_tokens = 40;
  run.hit_tokens = 10;
  run.steps = two_steps().use();
  run.max_sequences = 4;
  run.pool_blocks = 8;
  return run;
}

TEST(ReplayReport, AddsUp) {
  const ReplayReport report =
      make_report(small_run(), {.time_to_first_token = 1, .time_between_tokens = 2});
  EXPECT_EQ(report.requests, 3u);
  EXPECT_EQ(report.failed, 1u);
  EXPECT_EQ(report.generated_tokens, 4u);
  EXPECT_DOUBLE_EQ(report.makespan_seconds, 4);
  EXPECT_DOUBLE_EQ(report.throughput_tokens_per_s, 1);
  EXPECT_DOUBLE_EQ(report.ttft.mean, 1.5);
  EXPECT_DOUBLE_EQ(report.ttft.p90, 1.9);
  EXPECT_DOUBLE_EQ(report.tbt.mean, 1);
  EXPECT_DOUBLE_EQ(report.tpot.mean, 1);
  EXPECT_DOUBLE_EQ(report.e2e.mean, 2.5);
  EXPECT_EQ(report.met_goal, 1u);
  EXPECT_DOUBLE_EQ(report.goodput, 0.25);
  EXPECT_DOUBLE_EQ(report.prefix_hit_share, 0.25);
  EXPECT_EQ(report.preemptions(), 1u);
}

TEST(ReplayReport, TheDeviceIsBusyWhileAStepRuns) {
  ReplayRun run = small_run();
  run.begin = 96;  // the last step ends at 104
  EXPECT_DOUBLE_EQ(make_report(run, {}).busy_share, 4.0 / 8);
}

TEST(ReplayReport, TokensCostWhatTheDeviceCostsFromTheFirstArrivalToTheLastToken) {
  EXPECT_EQ(make_report(small_run(), {}).cost_per_million_tokens, std::nullopt);
  // Four seconds for four tokens: a million take a million seconds.
  const ReplayReport report = make_report(small_run(), {}, 3.6);
  ASSERT_TRUE(report.cost_per_million_tokens.has_value());
  EXPECT_DOUBLE_EQ(*report.cost_per_million_tokens, 1000);
  EXPECT_EQ(make_report({}, {}, 3.6).cost_per_million_tokens, std::nullopt) << "no tokens";
  EXPECT_FALSE(to_json(make_report(small_run(), {})).contains("cost_per_million_tokens"));
  EXPECT_DOUBLE_EQ(to_json(report)["cost_per_million_tokens"].get<double>(), 1000);
}

TEST(ReplayReport, TheSwapRateCountsTheTimeInWhichBlocksMoved) {
  ReplayRun run = small_run();
  run.swaps = {.out_bytes = 3'000'000'000, .in_bytes = 1'000'000'000, .seconds = 0.5};
  std::vector<ReplayReport> reports = {make_report(run, {})};
  EXPECT_DOUBLE_EQ(*reports[0].swap_bytes_per_s(), 8e9);
  EXPECT_EQ(to_json(reports[0])["swapped_out_bytes"], 3'000'000'000);
  EXPECT_EQ(to_json(reports[0])["swapped_in_bytes"], 1'000'000'000);
  EXPECT_DOUBLE_EQ(to_json(reports[0])["swap_bytes_per_s"].get<double>(), 8e9);
  EXPECT_THAT(format_table(reports, {}), HasSubstr("swap rate, GB/s"));
  EXPECT_THAT(format_table(reports, {}), HasSubstr("8.00\n"));
  EXPECT_THAT(table_legend(reports), HasSubstr("swap rate"));

  // A device without timestamps: bytes, but no rate.
  run.swaps.seconds = 0;
  reports[0] = make_report(run, {});
  EXPECT_EQ(reports[0].swap_bytes_per_s(), std::nullopt);
  EXPECT_TRUE(to_json(reports[0])["swap_bytes_per_s"].is_null());
  EXPECT_THAT(format_table(reports, {}), HasSubstr("swapped out, MB"));

  reports[0] = make_report(small_run(), {});
  EXPECT_THAT(format_table(reports, {}), Not(HasSubstr("swap rate")));
  EXPECT_THAT(table_legend(reports), Not(HasSubstr("swap rate")));
}

TEST(RequestTiming, TokensThatAreHeldBackArriveTogether) {
  RequestTiming timing{.arrival = 10, .token_times = {11, 12, 13}};
  timing.deliver_together(12.5);
  EXPECT_THAT(timing.token_times, ::testing::ElementsAre(13, 13, 13));
  timing.deliver_together(15);
  EXPECT_EQ(timing.time_to_first_token(), 5);
  EXPECT_EQ(timing.end_to_end(), 5);
  EXPECT_EQ(timing.longest_gap(), 0);
}

TEST(ReplayReport, AnEmptyRunHasNoDivisionByZero) {
  const ReplayReport report = make_report({}, {});
  EXPECT_EQ(report.busy_share, 0);
  EXPECT_EQ(report.throughput_tokens_per_s, 0);
  EXPECT_EQ(report.goodput, 0);
  EXPECT_EQ(report.occupancy, 0);
}

TEST(ReplayReport, JsonHasWhatScriptsRelyOn) {
  const nlohmann::json json = to_json(make_report(small_run(), {}));
  for (const char* key : {"policy", "throughput_tokens_per_s", "ttft_seconds", "tbt_seconds",
                          "tpot_seconds", "e2e_seconds", "occupancy", "padding_share",
                          "kv_waste_share", "preemptions", "prefix_hit_share", "goodput"})
    EXPECT_TRUE(json.contains(key)) << key;
  for (const char* key : {"ttft_seconds", "tbt_seconds", "tpot_seconds", "e2e_seconds"})
    for (const char* value : {"mean", "p50", "p90", "p99"})
      EXPECT_TRUE(json[key].contains(value)) << key << value;
  const nlohmann::json list = requests_to_json(small_run());
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[1]["cached_tokens"], 16);
  EXPECT_DOUBLE_EQ(list[1]["ttft_seconds"].get<double>(), 2);
}

TEST(ReplayReport, TheTableHasAColumnForEachPolicy) {
  std::vector<ReplayReport> reports(2, make_report(small_run(), {}));
  reports[0].policy = "static";
  reports[1].policy = "continuous kv-allocation=reserve";
  const std::string table = format_table(reports, {});
  EXPECT_THAT(table, HasSubstr("continuous kv-allocation=reserve\n"));
  EXPECT_THAT(table, HasSubstr("goodput (TTFT 1 s, TBT 0.1 s), requests/s"));
  EXPECT_THAT(table, HasSubstr("TTFT, p90, ms"));
  EXPECT_THAT(table, HasSubstr("KV waste, tokens per sequence"));
  EXPECT_THAT(table_legend(reports), HasSubstr("TTFT is the time to the first token"));
  EXPECT_THAT(table_legend(reports), Not(HasSubstr("delivers")));
  reports[0].switches = describe(*named_policy("static"));
  EXPECT_THAT(table_legend(reports), HasSubstr("static delivers the tokens of a batch together"));
  // All lines have the same length, so the columns line up.
  size_t begin = 0, width = table.find('\n');
  while (begin < table.size()) {
    const size_t end = table.find('\n', begin);
    EXPECT_EQ(end - begin, width) << table;
    begin = end + 1;
  }
}

}  // namespace
}  // namespace hearth::testing
