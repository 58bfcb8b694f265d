#include "ui/data/comparison.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/lessons/lesson_library.h"
#include "ui/data/compared_numbers.h"
#include "ui/data/comparison_desk.h"
#include "ui/data/comparison_player.h"
#include "ui/data/lesson_comparison.h"

namespace hearth {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

Comparison compared(std::string_view what, const std::string& requests) {
  const Result<PolicyPair> policies = parse_comparison(what);
  EXPECT_TRUE(policies.ok()) << policies.error().message;
  const Result<ComparisonPlan> plan = plan_comparison(*policies, requests, compared_limits());
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  Result<Comparison> comparison = compare_modelled(ModelledDevice{}, *plan);
  EXPECT_TRUE(comparison.ok()) << comparison.error().message;
  return std::move(*comparison);
}

const std::string kFewRequests = "synthetic:rate=inf,n=10,prompt=16..80,gen=8..60,seed=2";

TEST(ComparisonSpec, TakesPoliciesAndSwitches) {
  const Result<PolicyPair> named = parse_comparison("static,continuous");
  ASSERT_TRUE(named.ok());
  EXPECT_EQ((*named)[0].label, "static");
  EXPECT_EQ(policy_name((*named)[0].policy), "static");
  EXPECT_EQ(policy_name((*named)[1].policy), "continuous");
  // A switch alone changes the policy continuous.
  const Result<PolicyPair> switches = parse_comparison("kv=reserve,kv=on-demand");
  ASSERT_TRUE(switches.ok());
  EXPECT_EQ((*switches)[0].policy.kv, KvAllocation::kReserve);
  EXPECT_EQ((*switches)[1].policy, *named_policy("continuous"));
  EXPECT_TRUE(parse_comparison("static+kv=on-demand,preemption=swap+victim=largest").ok());
}

TEST(ComparisonSpec, MistakesAreOneLine) {
  for (const char* text : {"static", "static,", ",", "static,dynamic,packed", "kv=reserve,kv=later",
                           "statik,continuous", "=,=", "kv,static"}) {
    const Result<PolicyPair> pair = parse_comparison(text);
    ASSERT_FALSE(pair.ok()) << text;
    EXPECT_EQ(pair.error().message.find('\n'), std::string::npos) << pair.error().message;
  }
}

TEST(ComparisonSpec, EveryChoiceCanBeCompared) {
  const std::vector<std::string> choices = comparison_choices();
  EXPECT_THAT(choices, Contains("no-cache"));
  EXPECT_THAT(choices, Contains("preemption=swap"));
  for (const std::string& choice : choices)
    EXPECT_TRUE(parse_compared_policy(choice).ok()) << choice;
}

// Its label is what the lists show and what is parsed again when the user runs it once more.
TEST(ComparisonSpec, APolicyWithoutANameIsSpeltOut) {
  Policy policy = *named_policy("continuous");
  policy.preemption = Preemption::kSwap;
  policy.max_chunk_tokens = 64;
  const PolicyPair pair = comparison_for(policy);
  const Result<ComparedPolicy> again = parse_compared_policy(pair[0].label);
  ASSERT_TRUE(again.ok()) << pair[0].label;
  EXPECT_EQ(again->policy, policy);
  EXPECT_EQ(comparison_for(*named_policy("continuous"))[0].label, "static");
}

TEST(Comparison, BothSidesGetTheSameRequestsAndStartAtZero) {
  const Comparison comparison = compared("static,continuous", kFewRequests);
  ASSERT_EQ(comparison.runs[0].requests.size(), 10u);
  ASSERT_EQ(comparison.runs[1].requests.size(), 10u);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(comparison.runs[0].requests[i].arrival, comparison.runs[1].requests[i].arrival);
    EXPECT_EQ(comparison.runs[0].requests[i].token_times.size(),
              comparison.runs[1].requests[i].token_times.size());
  }
  for (const ComparedRun& run : comparison.runs) EXPECT_NEAR(run.steps[0].begin_seconds, 0, 1e-6);
  EXPECT_GT(comparison.runs[0].end_seconds(), comparison.runs[1].end_seconds());
  // The same again: virtual time.
  EXPECT_EQ(compared("static,continuous", kFewRequests).end_seconds(), comparison.end_seconds());
}

TEST(Comparison, TheNumbersAreThoseOfTheTimeShown) {
  ComparisonPlayer player;
  player.open(compared("static,continuous", kFewRequests));
  EXPECT_TRUE(player.playing());
  EXPECT_EQ(player.numbers()[0].use.steps, 0u);
  player.seek(player.end() / 2);
  const NumbersPair half = player.numbers();
  EXPECT_FALSE(half[0].done);
  EXPECT_GT(half[0].use.steps, 0u);
  EXPECT_DOUBLE_EQ(half[0].seconds, player.end() / 2);
  EXPECT_TRUE(difference_in_words(half).empty());
  player.seek(player.end());
  const NumbersPair whole = player.numbers();
  EXPECT_TRUE(whole[0].done && whole[1].done);
  EXPECT_EQ(whole[0].use.steps, player.comparison()->runs[0].steps.size());
  EXPECT_EQ(player.timeline(0).end_column(), whole[0].use.steps);
  // Back to the middle it is as it was, and so is the beginning.
  player.seek(player.end() / 2);
  EXPECT_EQ(player.numbers()[0].use.steps, half[0].use.steps);
  EXPECT_EQ(player.numbers()[1].tokens, half[1].tokens);
  EXPECT_EQ(player.timeline(1).end_column(), half[1].use.steps);
  player.reset();
  EXPECT_EQ(player.now(), 0);
  EXPECT_EQ(player.timeline(0).end_column() + player.timeline(1).end_column(), 0u);
}

TEST(Comparison, StepsForwardAndBackEndWhereAStepEnds) {
  ComparisonPlayer player;
  player.open(compared("static,continuous", kFewRequests));
  const std::array<ComparedRun, 2>& runs = player.comparison()->runs;
  player.step(true);
  EXPECT_FALSE(player.playing());
  EXPECT_EQ(player.now(), std::min(runs[0].steps[0].end_seconds, runs[1].steps[0].end_seconds));
  for (int i = 0; i < 10; ++i) player.step(true);
  const double there = player.now();
  player.step(true);
  EXPECT_GT(player.now(), there);
  player.step(false);
  EXPECT_EQ(player.now(), there);
  for (int i = 0; i < 20; ++i) player.step(false);
  EXPECT_EQ(player.now(), 0);
}

TEST(Comparison, PlayingEndsAtTheEndAndStartsOver) {
  ComparisonPlayer player;
  player.open(compared("static,continuous", kFewRequests));
  player.set_speed(1);
  player.update(player.end() / 4);
  EXPECT_DOUBLE_EQ(player.now(), player.end() / 4);
  player.update(10 * player.end());
  EXPECT_TRUE(player.at_end());
  EXPECT_FALSE(player.playing());
  player.play(true);
  EXPECT_EQ(player.now(), 0);
}

TEST(Comparison, TheDifferenceIsInWords) {
  ComparisonPlayer player;
  player.open(compared("static,continuous", std::string(kComparedRequests)));
  player.seek(player.end());
  const std::vector<std::string> words = difference_in_words(player.numbers());
  ASSERT_GE(words.size(), 3u);
  EXPECT_THAT(words[0], HasSubstr("continuous finished 1.9 times sooner"));
  EXPECT_THAT(words[1], HasSubstr("% padding, continuous none."));
  EXPECT_THAT(words[2], HasSubstr("First tokens came"));
  const std::vector<ComparedLine> lines = compared_lines(player.numbers());
  const auto line = std::ranges::find(lines, "time until all had finished", &ComparedLine::name);
  ASSERT_NE(line, lines.end());
  EXPECT_EQ(line->difference, "1.9 times sooner");
}

TEST(Comparison, EqualSidesAreCalledEqual) {
  ComparisonPlayer player;
  player.open(compared("continuous,continuous", kFewRequests));
  player.seek(player.end());
  const std::vector<std::string> words = difference_in_words(player.numbers());
  ASSERT_EQ(words.size(), 1u);
  EXPECT_THAT(words[0], HasSubstr("Both finished after"));
}

// A switch makes the difference that it stands for.
TEST(Comparison, ReservationLeavesSlotsEmpty) {
  ComparisonPlayer player;
  player.open(compared("kv=reserve,kv=on-demand", std::string(kComparedRequests)));
  player.seek(player.end());
  EXPECT_GT(player.numbers()[0].use.kv_waste_share(), 2 * player.numbers()[1].use.kv_waste_share());
  EXPECT_THAT(difference_in_words(player.numbers()), Contains(HasSubstr("kv=reserve left ")));
}

TEST(Comparison, RequestsThatCannotBeReadAreReported) {
  const PolicyPair pair = comparison_for({});
  EXPECT_FALSE(plan_comparison(pair, "synthetic:rate=", compared_limits()).ok());
  EXPECT_FALSE(plan_comparison(pair, "nowhere.csv", compared_limits()).ok());
  // Longer than the pool: cut, not refused.
  EXPECT_TRUE(plan_comparison(pair, "synthetic:n=2,prompt=9000,gen=9000", compared_limits()).ok());
}

TEST(ComparisonDesk, RunsWhenTheDeviceIsReadyAndCanShowTheEnd) {
  ComparisonDesk desk;
  desk.want({.policies = *parse_comparison("static,continuous"),
             .requests = kFewRequests,
             .plan = {},
             .at_end = true});
  desk.update(0, false, compared_limits(), {});
  EXPECT_TRUE(desk.running());
  EXPECT_EQ(desk.labels[1], "continuous");
  while (desk.running()) desk.update(0, true, compared_limits(), {});
  ASSERT_NE(desk.player.comparison(), nullptr) << desk.failure();
  EXPECT_TRUE(desk.player.at_end());
  desk.labels[0] = "statik";
  desk.run();
  EXPECT_FALSE(desk.running());
  EXPECT_THAT(desk.failure(), HasSubstr("did you mean static?"));
}

TEST(LessonComparison, LessonsAboutTwoPoliciesCanBeWatchedSideBySide) {
  const Result<Lesson> lesson = find_lesson("static");
  ASSERT_TRUE(lesson.ok());
  const std::optional<ComparisonPlan> plan = lesson_comparison(*lesson, {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->sides[0].label, "static");
  EXPECT_EQ(plan->sides[1].label, "continuous");
  EXPECT_TRUE(compare_modelled(ModelledDevice{}, *plan).ok());
  // Other weights are more than scheduling.
  EXPECT_FALSE(lesson_comparison(*find_lesson("quantization"), {}));
  EXPECT_FALSE(lesson_comparison(*find_lesson("speculation"), {}));
}

}  // namespace
}  // namespace hearth
