// Ranges with a median, as in prompt=16..3000~540, and arrivals at a given rate.
#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/replay/synthetic_trace.h"

namespace hearth {
namespace {

TEST(SyntheticMedian, LengthsAreSpreadAroundIt) {
  const Trace trace = make_synthetic_trace("n=4001,prompt=16..3000~540,gen=8..500~134").value();
  std::vector<uint32_t> prompts, answers;
  for (const TraceRequest& request : trace.requests) {
    prompts.push_back(request.prompt_tokens);
    answers.push_back(request.generated_tokens);
  }
  std::ranges::sort(prompts);
  std::ranges::sort(answers);
  EXPECT_GE(prompts.front(), 16u);
  EXPECT_LE(prompts.back(), 3000u);
  EXPECT_NEAR(prompts[2000], 540, 40);
  EXPECT_GE(answers.front(), 8u);
  EXPECT_LE(answers.back(), 500u);
  EXPECT_NEAR(answers[2000], 134, 10);
  // Longer ones are farther away than shorter ones, and few are at the end.
  EXPECT_NEAR(prompts[3600], 540 * 2.9, 150);  // the 90th percentile
  EXPECT_NEAR(prompts[400], 540 / 2.9, 30);
  EXPECT_LT(std::ranges::count_if(prompts, [](uint32_t each) { return each > 2900; }), 40);
}

TEST(SyntheticMedian, TheMedianMayBeAnEndOfTheRange) {
  for (const char* text :
       {"n=50,prompt=10..20~10", "n=50,prompt=10..20~20", "n=50,prompt=7..7~7"}) {
    const auto trace = make_synthetic_trace(text);
    ASSERT_TRUE(trace.ok()) << text;
    for (const TraceRequest& request : trace->requests) {
      EXPECT_GE(request.prompt_tokens, 7u);
      EXPECT_LE(request.prompt_tokens, 20u);
    }
  }
}

TEST(SyntheticMedian, AMedianOutsideTheRangeIsRefused) {
  for (const char* text : {"prompt=10..20~9", "prompt=10..20~21", "prompt=10..20~", "gen=10..20~x",
                           "gen=~5", "gen=10~5..20"}) {
    const auto trace = make_synthetic_trace(text);
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_THAT(trace.error().message, ::testing::HasSubstr(text)) << text;
  }
}

TEST(ArriveAtRate, IsAPoissonProcessOfThatRateAndSeed) {
  Trace trace = make_synthetic_trace("n=4001,prompt=4,gen=4").value();
  arrive_at_rate(trace, 8, 1);
  EXPECT_EQ(trace.requests.front().arrival_seconds, 0);
  EXPECT_NEAR(trace.requests.back().arrival_seconds, 500, 25);
  double shorter = 0;  // than the mean gap
  for (size_t i = 1; i < trace.requests.size(); ++i) {
    const double gap = trace.requests[i].arrival_seconds - trace.requests[i - 1].arrival_seconds;
    ASSERT_GE(gap, 0);
    if (gap < 0.125) ++shorter;
  }
  EXPECT_NEAR(shorter / 4000, 0.632, 0.03);  // 1 - 1/e
  Trace again = trace, other = trace;
  arrive_at_rate(again, 8, 1);
  arrive_at_rate(other, 8, 2);
  EXPECT_EQ(again.requests, trace.requests);
  EXPECT_NE(other.requests, trace.requests);
}

}  // namespace
}  // namespace hearth
