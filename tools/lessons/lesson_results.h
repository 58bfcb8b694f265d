// What the runs of a lesson measured, and the numbers in it by name. Pure.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/lessons/lesson.h"
#include "tools/replay/replay_report.h"

namespace hearth {

// Nothing: not measured, because the device is modelled or the lesson did not ask for it.
struct LessonRunResult {
  std::string name;  // of the run
  ReplayReport report;
  double weight_bytes = 0;
  std::optional<double> accepted_share;  // of proposed tokens, 0 to 1
  std::optional<double> logprob;         // per token, over the first request's text
  std::optional<double> perplexity;      // of the lesson's text
  std::string text;                      // of the first request
};

struct LessonResults {
  bool simulated = false;
  std::string model, device;          // for people
  std::vector<LessonRunResult> runs;  // in the lesson's order
};

// A number of a run. Times are in ms and shares in %, as tables show them.
struct LessonMetric {
  std::string_view name;   // in lesson files: "ttft_mean"
  std::string_view label;  // in tables: "TTFT, mean, ms"
  std::function<std::optional<double>(const LessonRunResult&)> read;
};
std::span<const LessonMetric> lesson_metrics();
const LessonMetric* find_metric(std::string_view name);  // null: there is none

// best(max-seqs) and best(max-step-tokens): the setting of the run that best_point() chooses under
// the lesson's service goal; 0 if none meets it.
inline constexpr std::string_view kBestMetric = "best";
// What best() may be called with.
std::span<const std::string_view> best_settings();

// The number, if it was measured. REQUIRES: it is one of the lesson's.
std::optional<double> look_up(const Lesson& lesson, const LessonResults& results,
                              const Measure::Number& number);

// Which choice the measurements make right, and the explanation of it.
struct LessonAnswer {
  double measured = 0;
  char letter = 'a';
  std::vector<std::string> paragraphs;
};
// Fails if the lesson's number was not measured.
Result<LessonAnswer> answer_of(const Lesson& lesson, const LessonResults& results);

// One or two sentences: what was measured, which choice that is, and whether it was predicted.
// `prediction` 0: there was none.
std::string verdict(const Lesson& lesson, const LessonAnswer& answer, char prediction);

}  // namespace hearth
