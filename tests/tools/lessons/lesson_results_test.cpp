// The answer of a lesson follows from what was measured and from nothing else.
#include "tools/lessons/lesson_results.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/lessons/lesson_page.h"
#include "tools/lessons/lesson_parser.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kAnswerLesson = R"(title: T
summary: s
order: 1
explanation: e
load: synthetic:n=1
slo: ttft=1,tbt=0.1
run slow: static max-seqs=1
run fast: continuous max-seqs=8
question: How many times?
measure: throughput(fast) / throughput(slow)
unit: times
choice a: below 1.5: little
choice b: 1.5 to 4: some
choice c: from 4: much
show: throughput perplexity
answer:
  From {throughput(slow)} to {throughput(fast)}.

  Perplexity {perplexity(fast)}.
look-at: l
try: t
)";

Lesson answer_lesson() { return parse_lesson(kAnswerLesson, "test").value(); }

LessonResults answer_results(double slow, double fast) {
  LessonResults results;
  results.runs.resize(2);
  results.runs[0].name = "slow";
  results.runs[0].report.throughput_tokens_per_s = slow;
  results.runs[1].name = "fast";
  results.runs[1].report.throughput_tokens_per_s = fast;
  for (LessonRunResult& run : results.runs) run.report.generated_tokens = 10;
  return results;
}

TEST(LessonAnswer, IsTheChoiceThatTheNumberFallsInto) {
  const Lesson lesson = answer_lesson();
  for (const auto& [fast, letter] :
       {std::pair{100.0, 'a'}, {149.9, 'a'}, {150.0, 'b'}, {399.0, 'b'}, {400.0, 'c'}}) {
    const Result<LessonAnswer> answer = answer_of(lesson, answer_results(100, fast));
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(answer->letter, letter) << fast;
    EXPECT_DOUBLE_EQ(answer->measured, fast / 100);
  }
}

TEST(LessonAnswer, ClaimsNothingThatWasNotMeasured) {
  const Lesson lesson = answer_lesson();
  LessonResults results = answer_results(100, 200);
  EXPECT_THAT(answer_of(lesson, results)->paragraphs, ::testing::ElementsAre("From 100 to 200."));
  results.runs[1].perplexity = 3.5;
  EXPECT_THAT(answer_of(lesson, results)->paragraphs,
              ::testing::ElementsAre("From 100 to 200.", "Perplexity 3.50."));
  EXPECT_THAT(answer_of(lesson, answer_results(0, 200)).error().message,
              HasSubstr("did not measure throughput(fast) / throughput(slow)"));
  results.runs[0].report.failed = 1;
  EXPECT_THAT(answer_of(lesson, results).error().message, HasSubstr("run slow failed"));
}

TEST(LessonAnswer, ComparesWithThePrediction) {
  const Lesson lesson = answer_lesson();
  const LessonAnswer answer = *answer_of(lesson, answer_results(100, 210));
  EXPECT_EQ(verdict(lesson, answer, 0), "Measured: 2.10 times. That is b, some.");
  EXPECT_EQ(verdict(lesson, answer, 'b'),
            "Measured: 2.10 times. That is b, some. Your prediction was right.");
  EXPECT_EQ(verdict(lesson, answer, 'c'),
            "Measured: 2.10 times. That is b, some. You predicted c, much (4 times or more).");
}

TEST(LessonAnswer, TheBestSettingIsWithinTheGoal) {
  std::string text(kAnswerLesson);
  const std::string_view from = "throughput(fast) / throughput(slow)";
  const Lesson lesson =
      parse_lesson(text.replace(text.find(from), from.size(), "best(max-seqs)"), "test").value();
  LessonResults results = answer_results(100, 200);
  EXPECT_EQ(answer_of(lesson, results)->measured, 8);
  results.runs[1].report.tbt.p99 = 0.2;  // the goal is 0.1
  EXPECT_EQ(answer_of(lesson, results)->measured, 1);
  results.runs[0].report.ttft.p99 = 2;
  EXPECT_EQ(answer_of(lesson, results)->measured, 0);
}

TEST(LessonPage, LeavesOutRowsThatNoRunMeasured) {
  const Lesson lesson = answer_lesson();
  LessonResults results = answer_results(100, 200);
  EXPECT_THAT(format_lesson_table(lesson, results), Not(HasSubstr("perplexity")));
  results.runs[1].perplexity = 3.5;
  EXPECT_EQ(format_lesson_table(lesson, results),
            "                        slow  fast\n"
            "  throughput, tokens/s   100   200\n"
            "  perplexity               -  3.50\n");
}

TEST(LessonPage, BreaksParagraphsAtWordsAndKeepsOtherLines) {
  EXPECT_EQ(
      format_paragraphs("one two three four five six\n\n  as it is, however long it may be", 22, 2),
      "  one two three four\n  five six\n\n    as it is, however long it may be\n");
  EXPECT_EQ(format_paragraphs("short", 80), "short\n");
}

TEST(LessonPage, AsksWhatTheRuleDecides) {
  const std::string page = format_lesson(answer_lesson(), true, 80);
  EXPECT_THAT(page, HasSubstr("b) some (1.5 to 4 times)"));
  EXPECT_THAT(page, HasSubstr("run fast: continuous max-seqs=8"));
}

TEST(LessonMetrics, HaveDifferentNames) {
  for (const LessonMetric& metric : lesson_metrics())
    EXPECT_EQ(find_metric(metric.name), &metric) << metric.name;
  EXPECT_EQ(find_metric("speed"), nullptr);
}

}  // namespace
}  // namespace hearth::testing
