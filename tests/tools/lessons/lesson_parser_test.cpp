// Lesson files: what they may say, and one line with the line number for everything else.
#include "tools/lessons/lesson_parser.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Line 1 is the comment.
constexpr std::string_view kGoodLesson = R"(# A comment.
title: Why: a colon
summary: short
order: 10

explanation:
  One paragraph
  on two lines.

  Another one:

    a line as it is
  and text again.
load: synthetic:n=4,prompt=8,gen=4
load long: synthetic:n=2,prompt=64,gen=4
modelled-load long: synthetic:n=8,prompt=64,gen=4
slo: ttft=2,tbt=0.5
modelled-slo: ttft=1,tbt=0.1
engine: max-seqs=4 kv-blocks=64
run one: static max-seqs=1
run big-one: continuous+kv=reserve load=long beams=3 temp=0.5
question: How much?
measure: throughput(big-one) / throughput(one)
unit: times
choice a: below 1.5: little
choice b: 1.5 to 4: some
choice c: from 4: much: a lot
show: throughput, ttft_mean
answer:
  First {throughput(one)}.

  Second {measure_is_not_here}.
look-at: the table
try: something
)";

std::string lesson_with(std::string_view from, std::string_view to) {
  std::string text(kGoodLesson);
  const std::string_view broken = "{measure_is_not_here}";
  text.replace(text.find(broken), broken.size(), "{steps(one)}");
  const size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

Result<Lesson> parsed(std::string_view from = "comment", std::string_view to = "comment") {
  return parse_lesson(lesson_with(from, to), "test");
}

std::string parse_error(std::string_view from, std::string_view to) {
  const Result<Lesson> lesson = parsed(from, to);
  EXPECT_FALSE(lesson.ok()) << from << " -> " << to;
  if (lesson.ok()) return {};
  EXPECT_EQ(lesson.error().message.find('\n'), std::string::npos) << lesson.error().message;
  return lesson.error().message;
}

TEST(LessonParser, ReadsEverything) {
  const Result<Lesson> lesson = parsed();
  ASSERT_TRUE(lesson.ok()) << lesson.error().message;
  EXPECT_EQ(lesson->name, "test");
  EXPECT_EQ(lesson->title, "Why: a colon");
  EXPECT_EQ(lesson->order, 10u);
  EXPECT_EQ(lesson->explanation,
            "One paragraph on two lines.\n\nAnother one:\n\n  a line as it is\nand text again.");
  ASSERT_EQ(lesson->loads.size(), 2u);
  EXPECT_EQ(lesson->load("long").modelled_trace, "synthetic:n=8,prompt=64,gen=4");
  EXPECT_EQ(lesson->goal_on(false).time_to_first_token, 2);
  EXPECT_EQ(lesson->goal_on(true).time_to_first_token, 1);
  ASSERT_EQ(lesson->runs.size(), 2u);
  EXPECT_EQ(lesson->runs[0].settings.max_sequences, 1u);  // the run's own, over the engine's
  EXPECT_EQ(lesson->runs[0].settings.kv_blocks, 64u);
  EXPECT_EQ(lesson->runs[1].policy, "continuous+kv=reserve");
  EXPECT_EQ(lesson->runs[1].settings.max_sequences, 4u);
  EXPECT_EQ(lesson->runs[1].settings.load, "long");
  EXPECT_EQ(lesson->runs[1].settings.beams, 3u);
  ASSERT_EQ(lesson->choices.size(), 3u);
  EXPECT_EQ(lesson->choices[2].text, "much: a lot");
  EXPECT_EQ(lesson->shown, (std::vector<std::string>{"throughput", "ttft_mean"}));
  EXPECT_EQ(lesson->answer.size(), 2u);
}

TEST(LessonParser, EveryNumberBelongsToExactlyOneChoice) {
  const Result<Lesson> lesson = parsed();
  ASSERT_TRUE(lesson.ok());
  for (const double value : {-1e9, 0.0, 1.49, 1.5, 3.99, 4.0, 1e9}) {
    int holding = 0;
    for (const LessonChoice& choice : lesson->choices) holding += choice.holds(value) ? 1 : 0;
    EXPECT_EQ(holding, 1) << value;
  }
  EXPECT_TRUE(lesson->choice('b')->holds(1.5));
  EXPECT_FALSE(lesson->choice('b')->holds(4));
  EXPECT_EQ(describe_range(*lesson->choice('a'), "times"), "below 1.5 times");
  EXPECT_EQ(describe_range(*lesson->choice('b'), "times"), "1.5 to 4 times");
  EXPECT_EQ(describe_range(*lesson->choice('c'), ""), "4 or more");
}

TEST(LessonParser, NamesTheLineOfABadField) {
  EXPECT_EQ(parse_error("title: Why: a colon", "titel: Why"),
            "lesson test, line 2: unknown field 'titel'; did you mean title?");
  EXPECT_THAT(parse_error("summary: short", "summary:"),
              HasSubstr("line 3: 'summary' has no text"));
  EXPECT_THAT(parse_error("summary: short", "title: again"), HasSubstr("line 3: 'title' is there"));
  EXPECT_THAT(parse_error("summary: short", "summary x: short"), HasSubstr("takes no name"));
  EXPECT_THAT(parse_error("order: 10", "order: ten"), HasSubstr("line 4: 'ten' is not a whole"));
  EXPECT_THAT(parse_error("order: 10", "order is 10"), HasSubstr("line 4: 'order is 10'"));
  EXPECT_THAT(parse_error("summary: short", "summary: a\tb"), HasSubstr("line 3: a tab"));
  EXPECT_THAT(parse_error("# A comment.", "  text"), HasSubstr("line 1: an indented line before"));
  EXPECT_THAT(parse_error("# A comment.", ": text"), HasSubstr("line 1: a field has no name"));
  EXPECT_THAT(parse_error("slo: ttft=2", "slo: ttfx=2"), HasSubstr("line 17"));
}

TEST(LessonParser, NamesTheLineOfABadLoadOrRun) {
  EXPECT_THAT(parse_error("load: synthetic:n=4", "load: trace.csv n=4"),
              HasSubstr("line 14: a load begins with synthetic:"));
  EXPECT_THAT(parse_error("load: synthetic:n=4", "load: synthetic:m=4"), HasSubstr("line 14"));
  EXPECT_THAT(parse_error("load long: s", "load: s"),
              HasSubstr("line 15: this load is there twice"));
  EXPECT_THAT(parse_error("modelled-load long", "modelled-load other"),
              HasSubstr("line 16: a modelled-load comes after"));
  EXPECT_THAT(parse_error("run one: static", "run one: statik"),
              HasSubstr("line 20: unknown policy 'statik'"));
  EXPECT_THAT(parse_error("run one:", "run:"), HasSubstr("line 20: a run has a name"));
  EXPECT_THAT(parse_error("run big-one:", "run one:"), HasSubstr("line 21: there are two runs"));
  EXPECT_THAT(parse_error("max-seqs=1\n", "max-sequences=1\n"),
              HasSubstr("line 20: unknown setting 'max-sequences'"));
  EXPECT_THAT(parse_error("max-seqs=1\n", "max-seqs=0\n"), HasSubstr("line 20: max-seqs takes"));
  EXPECT_THAT(parse_error("engine: max-seqs=4", "engine: max-seqs=x"), HasSubstr("line 19"));
  EXPECT_THAT(parse_error("load=long", "load=lang"), HasSubstr("line 21: there is no load 'lang'"));
  EXPECT_THAT(parse_error("beams=3", "beams=99"), HasSubstr("line 21: beams takes"));
  EXPECT_THAT(parse_error("temp=0.5", "temp=hot"), HasSubstr("line 21: temp takes"));
  EXPECT_THAT(parse_error("temp=0.5", "weights=Q9"), HasSubstr("line 21: unknown weights 'Q9'"));
  EXPECT_THAT(parse_error("temp=0.5", "speculate=luck"), HasSubstr("line 21"));
}

TEST(LessonParser, ChoicesHaveNoGaps) {
  EXPECT_THAT(parse_error("choice a: below 1.5", "choice a: 0 to 1.5"),
              HasSubstr("line 25: the first choice is \"below X\""));
  EXPECT_THAT(parse_error("choice b: 1.5 to 4", "choice b: 2 to 4"), HasSubstr("line 26: choices"));
  EXPECT_THAT(parse_error("choice b: 1.5 to 4", "choice b: 4 to 1.5"), HasSubstr("not a range"));
  EXPECT_THAT(parse_error("choice b: 1.5", "choice c: 1.5"), HasSubstr("line 26: the next choice"));
  EXPECT_THAT(parse_error("choice c: from 4", "choice c: 4 to 9"),
              HasSubstr("line 27: the last choice is \"from X\""));
  EXPECT_THAT(parse_error("from 4: much: a lot", "from 4"), HasSubstr("has a text"));
  EXPECT_THAT(parse_error("choice c: from 4: much: a lot\n", ""), HasSubstr("line 26: the last"));
}

TEST(LessonParser, NumbersMustBeMeasured) {
  EXPECT_THAT(parse_error("measure: throughput(big-one)", "measure: throughputs(big-one)"),
              HasSubstr("line 23: unknown number 'throughputs'; did you mean throughput"));
  EXPECT_THAT(parse_error("/ throughput(one)", "/ throughput(two)"),
              HasSubstr("line 23: unknown run 'two'"));
  EXPECT_THAT(parse_error("/ throughput(one)", "/"), HasSubstr("line 23: the expression ends"));
  EXPECT_THAT(parse_error("show: throughput,", "show: speed,"),
              HasSubstr("line 28: unknown number"));
  EXPECT_THAT(parse_error("{throughput(one)}", "{throughput(two)}"), HasSubstr("line 29"));
  EXPECT_THAT(parse_error("{throughput(one)}", "{throughput(one)"), HasSubstr("line 29"));
  EXPECT_THAT(parse_error("/ throughput(one)", "/ best(kv-blocks)"), HasSubstr("best() takes"));
}

TEST(LessonParser, SaysWhatIsMissing) {
  EXPECT_EQ(parse_error("question: How much?\n", ""),
            "lesson test: the field 'question' is missing");
  EXPECT_THAT(parse_error("try: something", "unit2: x"), HasSubstr("unknown field 'unit2'"));
  const Result<Lesson> nothing = parse_lesson("", "empty");
  ASSERT_FALSE(nothing.ok());
  EXPECT_THAT(nothing.error().message, StartsWith("lesson empty: the field 'title'"));
}

TEST(LessonParser, BestNeedsAGoal) {
  EXPECT_TRUE(
      parsed("measure: throughput(big-one) / throughput(one)", "measure: best(max-seqs)").ok());
  std::string text =
      lesson_with("measure: throughput(big-one) / throughput(one)", "measure: best(max-seqs)");
  text.replace(text.find("slo: ttft=2,tbt=0.5\n"), 20, "");
  const Result<Lesson> lesson = parse_lesson(text, "test");
  ASSERT_FALSE(lesson.ok());
  EXPECT_THAT(lesson.error().message, HasSubstr("best() needs the field 'slo'"));
}

}  // namespace
}  // namespace hearth::testing
