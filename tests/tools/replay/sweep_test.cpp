// Sweeps: which values, which point is best, and a simulated one to the last digit.
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/replay/device_price.h"
#include "tools/replay/prompt_maker.h"
#include "tools/replay/simulated_replay.h"
#include "tools/replay/sweep_report.h"
#include "tools/replay/synthetic_trace.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<uint32_t> values_of(std::string_view text) {
  const Result<Sweep> sweep = parse_sweep(text);
  EXPECT_TRUE(sweep.ok()) << sweep.error().message;
  return sweep.ok() ? sweep->values : std::vector<uint32_t>();
}

std::string sweep_error(std::string_view text) {
  const Result<Sweep> sweep = parse_sweep(text);
  return sweep.ok() ? std::string() : sweep.error().message;
}

TEST(Sweep, ValuesAreListedOrDoubled) {
  EXPECT_THAT(values_of("max-seqs=1,2,4,8"), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(values_of("max-seqs=8,1,8"), ElementsAre(1, 8));
  EXPECT_THAT(values_of("max-seqs=1..64"), ElementsAre(1, 2, 4, 8, 16, 32, 64));
  EXPECT_THAT(values_of("max-seqs=1,2,4,...,64"), ElementsAre(1, 2, 4, 8, 16, 32, 64));
  EXPECT_THAT(values_of("max-seqs=3..20"), ElementsAre(3, 6, 12, 20));
  EXPECT_THAT(values_of("max-seqs=5..5,1"), ElementsAre(1, 5));
  EXPECT_THAT(values_of("max-step-tokens=64..1048576").back(), 1048576u);
}

TEST(Sweep, SetsTheLimitItNames) {
  const SchedulerLimits limits;
  const Sweep sequences = *parse_sweep("max-seqs=3"), tokens = *parse_sweep("max-step-tokens=5");
  EXPECT_EQ(sequences.at(3, limits).max_sequences, 3u);
  EXPECT_EQ(sequences.at(3, limits).max_step_tokens, limits.max_step_tokens);
  EXPECT_EQ(tokens.at(5, limits).max_step_tokens, 5u);
  EXPECT_EQ(tokens.at(5, limits).max_sequences, limits.max_sequences);
  EXPECT_EQ(tokens.value_in(tokens.at(5, limits)), 5u);
  EXPECT_EQ(sequences.parameter(), "max-seqs");
  EXPECT_EQ(tokens.parameter(), "max-step-tokens");
}

TEST(Sweep, MistakesAreExplained) {
  EXPECT_THAT(sweep_error("max-seq=1"), HasSubstr("did you mean max-seqs?"));
  EXPECT_THAT(sweep_error("ctx=1,2"), HasSubstr("max-seqs and max-step-tokens can"));
  EXPECT_THAT(sweep_error(""), HasSubstr("max-seqs and max-step-tokens can"));
  EXPECT_THAT(sweep_error("max-seqs"), HasSubstr("max-seqs=1,2,4,8"));
  for (const char* wrong : {"max-seqs=", "max-seqs=0", "max-seqs=1,,2", "max-seqs=1,", "max-seqs=x",
                            "max-seqs=-1", "max-seqs=4097", "max-seqs=1..", "max-seqs=..4"})
    EXPECT_THAT(sweep_error(wrong), HasSubstr("whole numbers from 1 to 4096")) << wrong;
  EXPECT_THAT(sweep_error("max-step-tokens=1048577"), HasSubstr("from 1 to 1048576"));
  EXPECT_THAT(sweep_error("max-seqs=8..4"), HasSubstr("smaller value first"));
  EXPECT_THAT(sweep_error("max-seqs=8,...,4"), HasSubstr("smaller value first"));
  for (const char* wrong : {"max-seqs=...", "max-seqs=1,...", "max-seqs=1,...,...,8"})
    EXPECT_THAT(sweep_error(wrong), HasSubstr("between two values")) << wrong;
  std::string many = "max-seqs=1";
  for (int i = 2; i <= 65; ++i) many += "," + std::to_string(i);
  EXPECT_THAT(sweep_error(many), HasSubstr("65 values are too many"));
}

SweepPoint point(uint32_t value, double throughput, double ttft, double tbt) {
  SweepPoint point{.value = value, .report = {}};
  point.report.generated_tokens = 10;
  point.report.throughput_tokens_per_s = throughput;
  point.report.ttft = {.mean = ttft, .p50 = ttft / 2, .p90 = ttft, .p99 = ttft};
  point.report.tbt = {.mean = tbt, .p50 = tbt / 2, .p90 = tbt, .p99 = tbt};
  return point;
}

const ServiceGoal kGoal{.time_to_first_token = 1, .time_between_tokens = 0.1};

TEST(SweepReport, TheBestPointHasTheMostThroughputOfThoseThatMeetTheGoal) {
  std::vector<SweepPoint> points = {point(1, 100, 2, 0.01), point(2, 200, 0.9, 0.02),
                                    point(4, 300, 1, 0.1), point(8, 300, 0.5, 0.05),
                                    point(16, 400, 0.5, 0.11)};
  EXPECT_EQ(best_point(points, kGoal), 2u) << "of equals, the first";
  points[2].report.failed = 1;
  EXPECT_EQ(best_point(points, kGoal), 3u);
  EXPECT_EQ(best_point(points, {.time_to_first_token = 0.1, .time_between_tokens = 0.1}),
            std::nullopt);
  EXPECT_EQ(best_point({}, kGoal), std::nullopt);
  EXPECT_FALSE(meets_goal({}, kGoal)) << "nothing was generated";
}

TEST(SweepReport, OfPointsThatAreEquallyFastTheBestHasTheLowestLatency) {
  std::vector<SweepPoint> points = {point(1, 295, 0.5, 0.01), point(2, 299, 0.5, 0.01),
                                    point(4, 300, 0.5, 0.01), point(8, 298, 0.5, 0.01)};
  points[0].report.e2e.mean = 1;  // fast, but more than 1 % behind
  points[1].report.e2e.mean = 3;
  points[2].report.e2e.mean = 4;
  points[3].report.e2e.mean = 3;
  EXPECT_EQ(best_point(points, kGoal), 1u);
  points[3].report.e2e.mean = 2;
  EXPECT_EQ(best_point(points, kGoal), 3u);
}

TEST(SweepReport, SaysWhichPointIsBestOrHowFarAllAre) {
  const Sweep sweep = *parse_sweep("max-seqs=2,4");
  const std::vector<SweepPoint> points = {point(2, 200, 3.25, 0.02), point(4, 300, 1.5, 0.2)};
  EXPECT_EQ(
      describe_best(sweep, points, {.time_to_first_token = 4, .time_between_tokens = 0.1}),
      "Best: max-seqs=2, 200.0 tokens/s. Of the points with p99 of TTFT within 4 s and of TBT "
      "within 0.1 s, it has the highest throughput; of those within 1 % of that, the lowest mean "
      "end-to-end time.\n");
  EXPECT_EQ(describe_best(sweep, points, kGoal),
            "No point has p99 of TTFT within 1 s and of TBT within 0.1 s and no failed "
            "request. The lowest p99 of TTFT is "
            "1.5 s at max-seqs=4, of TBT 0.02 s at max-seqs=2.\n");
  const nlohmann::json json = to_json(sweep, points, kGoal);
  EXPECT_EQ(json["parameter"], "max-seqs");
  EXPECT_TRUE(json["best"].is_null());
  ASSERT_EQ(json["points"].size(), 2u);
  EXPECT_EQ(json["points"][1]["value"], 4);
  EXPECT_EQ(json["points"][1]["meets_slo"], false);
  EXPECT_EQ(json["points"][1]["throughput_tokens_per_s"], 300);
  EXPECT_EQ(to_json(sweep, points, {.time_to_first_token = 4, .time_between_tokens = 1})["best"],
            4);
}

TEST(DevicePrice, IsMoneyPerHour) {
  EXPECT_EQ(*parse_price_per_hour("2.5/h"), 2.5);
  EXPECT_EQ(*parse_price_per_hour("2.5"), 2.5);
  EXPECT_EQ(*parse_price_per_hour("3/hour"), 3);
  for (const char* wrong :
       {"", "/h", "0", "-1", "inf", "nan", "2.5/d", "2.5 /h", "cheap", "1/h/h"}) {
    const Result<double> price = parse_price_per_hour(wrong);
    ASSERT_FALSE(price.ok()) << wrong;
    EXPECT_THAT(price.error().message, HasSubstr("such as 2.5/h"));
  }
  // Half an hour at 3 per hour for 500,000 tokens.
  EXPECT_DOUBLE_EQ(cost_per_million_tokens(3, 1800, 500'000), 3);
}

// A sweep as `hearth replay --simulate --sweep` runs it.
std::vector<SweepPoint> simulated(const Sweep& sweep, const Trace& trace) {
  const ModelledDevice device;
  const PromptMaker maker(text_token_ids(nullptr, device.vocabulary), 1);
  std::vector<std::vector<TokenId>> prompts;
  for (size_t i = 0; i < trace.requests.size(); ++i)
    prompts.push_back(maker.make(trace.requests[i], i));
  std::vector<SweepPoint> points;
  for (const uint32_t value : sweep.values) {
    const Result<ReplayRun> run =
        simulate_replay(device, sweep.at(value, scheduler_limits(device, {.max_sequences = 32})),
                        {}, {.trace = trace, .prompts = prompts, .begin = {}, .step = {}});
    EXPECT_TRUE(run.ok()) << run.error().message;
    if (run.ok()) points.push_back({.value = value, .report = make_report(*run, kGoal, 2.5)});
  }
  return points;
}

TEST(SimulatedSweep, IsTheSameEverywhere) {
  const Sweep sweep = *parse_sweep("max-seqs=1..32");
  const std::vector<SweepPoint> points =
      simulated(sweep, *make_synthetic_trace("rate=8,n=40,prompt=64..256,gen=16..64,seed=1"));
  EXPECT_EQ(
      format_sweep(sweep, points, kGoal),
      R"(max-seqs  tokens/s  goodput/s  TTFT p50  TTFT p99  TBT p50  TBT p99  e2e p50  busy %  occupancy %  preempted  cost/M     SLO
       1     120.0       0.30    5091.5    8602.6      7.7      7.7   5497.4   100.0        100.0          0   5.787  missed
       2     215.5       1.07    1938.7    2775.9      7.8     34.0   2333.2   100.0         96.7          0   3.223  missed
       4     290.8       7.25     183.9     669.5      7.8     47.0    612.6    91.4         80.1          0   2.388     met
       8     290.8       7.25      47.1     112.5      7.9     50.0    459.2    90.7         43.9          0   2.388     met
      16     290.8       7.25      44.9      87.7      7.9     50.0    459.3    90.7         22.1          0   2.388     met
      32     290.8       7.25      44.9      87.7      7.9     50.0    459.3    90.7         11.1          0   2.388     met
)");
  ASSERT_TRUE(best_point(points, kGoal).has_value());
  EXPECT_EQ(points[*best_point(points, kGoal)].value, 16u);
}

TEST(SimulatedSweep, TradesLatencyForThroughputByTheTokenBudget) {
  const Sweep sweep = *parse_sweep("max-step-tokens=32,128,512,2048");
  const std::vector<SweepPoint> points =
      simulated(sweep, *make_synthetic_trace("rate=8,n=40,prompt=800,gen=16..64,seed=1"));
  ASSERT_EQ(points.size(), 4u);
  EXPECT_LT(points[0].report.tbt.p99, points[3].report.tbt.p99 / 3);
  EXPECT_EQ(
      format_sweep(sweep, points, kGoal),
      R"(max-step-tokens  tokens/s  goodput/s  TTFT p50  TTFT p99  TBT p50  TBT p99  e2e p50  busy %  occupancy %  preempted  cost/M     SLO
             32     169.3       0.53    3086.8    4638.7      8.6      9.0   3477.9   100.0          7.5          0   4.101  missed
            128     201.1       0.75    2312.7    3168.9     28.4     29.9   3279.3   100.0         19.7          0   3.454  missed
            512     212.3       0.00    2019.7    2755.5    107.3    111.0   4797.1   100.0         53.0          0   3.271  missed
           2048     211.4       0.00    2106.0    2839.2     13.1    428.9   5410.1   100.0         63.2          0   3.285  missed
)");
}

}  // namespace
}  // namespace hearth::testing
