// The lessons in the program: each can be read, and runs on the modelled device.
#include "tools/lessons/lesson_library.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tools/lessons/lesson_page.h"
#include "tools/lessons/lesson_plan.h"
#include "tools/lessons/lesson_runner.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

std::vector<Lesson> library_lessons() {
  Result<std::vector<Lesson>> lessons = all_lessons();
  EXPECT_TRUE(lessons.ok()) << lessons.error().message;
  return lessons.ok() ? std::move(*lessons) : std::vector<Lesson>{};
}

TEST(LessonLibrary, HasALessonForEveryNotion) {
  const std::vector<Lesson> lessons = library_lessons();
  EXPECT_GE(lessons.size(), 15u);
  std::set<uint32_t> orders;
  for (const Lesson& lesson : lessons) {
    EXPECT_TRUE(orders.insert(lesson.order).second) << lesson.name << " has another one's order";
    EXPECT_GE(lesson.explanation.size(), 1200u) << lesson.name << " explains too little";
    EXPECT_LE(lesson.explanation.size(), 4000u) << lesson.name << " explains more than a page";
    EXPECT_GE(lesson.choices.size(), 3u) << lesson.name;
  }
}

TEST(LessonLibrary, EveryLessonRunsOnTheModelledDeviceWithTheSameNumbers) {
  for (const Lesson& lesson : library_lessons()) {
    SCOPED_TRACE(lesson.name);
    const auto run = [&] {
      const Result<LessonResults> results = run_lesson(lesson, {.simulate = true});
      EXPECT_TRUE(results.ok()) << results.error().message;
      if (!results.ok()) return std::string();
      const Result<LessonAnswer> answer = answer_of(lesson, *results);
      EXPECT_TRUE(answer.ok()) << answer.error().message;
      if (!answer.ok()) return std::string();
      EXPECT_FALSE(answer->paragraphs.empty());
      EXPECT_FALSE(format_lesson_table(lesson, *results).empty());
      return format_lesson_answer(lesson, *results, *answer, 'a', 80);
    };
    const std::string first = run();
    EXPECT_FALSE(first.empty());
    EXPECT_EQ(run(), first);
  }
}

TEST(LessonLibrary, LoadsFitTheBuiltInModel) {
  constexpr uint32_t kContext = 1024;  // of the built-in model
  for (const Lesson& lesson : library_lessons())
    for (const LessonRun& run : lesson.runs)
      for (const bool modelled : {false, true}) {
        Trace trace = lesson_trace(lesson, run, modelled);
        EXPECT_EQ(clip_lengths(trace, kContext), 0u) << lesson.name;
      }
}

TEST(LessonLibrary, FindsByNameAndByPath) {
  EXPECT_EQ(find_lesson("paging")->name, "paging");
  const Result<Lesson> unknown = find_lesson("pagin");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(unknown.error().message,
            "there is no lesson 'pagin'; did you mean paging? hearth lesson --list shows all");
  EXPECT_EQ(find_lesson("xylophone").error().message,
            "there is no lesson 'xylophone'; hearth lesson --list shows all");

  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("hearth_lesson_" + std::to_string(getpid()) + ".txt");
  std::ofstream(path) << lesson_files()[0].text;
  const Result<Lesson> read = find_lesson(path.string());
  EXPECT_TRUE(read.ok()) << read.error().message;
  std::ofstream(path) << "title: x\nbroken\n";
  EXPECT_THAT(find_lesson(path.string()).error().message, HasSubstr(", line 2: "));
  std::filesystem::remove(path);
  EXPECT_FALSE(find_lesson(path.string()).ok());
}

TEST(LessonRunner, QuantizedWeightsAreReadSooner) {
  const Result<LessonResults> results =
      run_lesson(*find_lesson("quantization"), {.simulate = true});
  ASSERT_TRUE(results.ok()) << results.error().message;
  const LessonRunResult &f16 = results->runs[0], &q4 = results->runs[1];
  EXPECT_NEAR(f16.weight_bytes / q4.weight_bytes, 16 / 4.5, 1e-9);
  EXPECT_GT(q4.report.throughput_tokens_per_s, 2 * f16.report.throughput_tokens_per_s);
}

TEST(LessonRunner, AcceptedGuessesCountAsTokens) {
  const Result<LessonResults> results = run_lesson(*find_lesson("speculation"), {.simulate = true});
  ASSERT_TRUE(results.ok()) << results.error().message;
  const LessonRunResult &plain = results->runs[0], &guess = results->runs[1];
  EXPECT_EQ(guess.report.generated_tokens, plain.report.generated_tokens);
  EXPECT_LT(guess.report.steps, plain.report.steps);
  EXPECT_GT(guess.report.throughput_tokens_per_s, plain.report.throughput_tokens_per_s);
  ASSERT_TRUE(guess.accepted_share.has_value());
  // Each of up to four guesses is accepted with 80 % if those before it are: 59 % on average.
  EXPECT_NEAR(*guess.accepted_share, 0.59, 0.15);
  EXPECT_FALSE(plain.accepted_share.has_value());
}

TEST(LessonRunner, BeamsAreABatch) {
  const Result<LessonResults> results = run_lesson(*find_lesson("decoding"), {.simulate = true});
  ASSERT_TRUE(results.ok()) << results.error().message;
  const ReplayReport &greedy = results->runs[0].report, &beams = results->runs[2].report;
  EXPECT_EQ(beams.generated_tokens, greedy.generated_tokens);
  EXPECT_GT(beams.occupancy, 2 * greedy.occupancy);
  EXPECT_GT(beams.makespan_seconds, greedy.makespan_seconds);
}

}  // namespace
}  // namespace hearth::testing
