#include "tools/lessons/lesson_results.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "tools/replay/sweep_report.h"

namespace hearth {
namespace {

constexpr std::array<std::string_view, 2> kBestSettings = {"max-seqs", "max-step-tokens"};

using ReadMetric = std::function<std::optional<double>(const LessonRunResult&)>;

ReadMetric metric_of(double ReplayReport::*number, double unit = 1) {
  return [=](const LessonRunResult& run) { return run.report.*number * unit; };
}
ReadMetric metric_of(uint64_t ReplayReport::*count) {
  return [=](const LessonRunResult& run) { return static_cast<double>(run.report.*count); };
}
ReadMetric metric_of(Summary ReplayReport::*times, double Summary::*value) {
  return [=](const LessonRunResult& run) { return run.report.*times.*value * 1000; };
}

std::vector<LessonMetric> make_lesson_metrics() {
  using Report = ReplayReport;
  constexpr double kPercent = 100;
  return {
      {"throughput", "throughput, tokens/s", metric_of(&Report::throughput_tokens_per_s)},
      {"makespan", "makespan, s", metric_of(&Report::makespan_seconds)},
      {"goodput", "goodput, requests/s", metric_of(&Report::goodput)},
      {"in_slo", "requests within the SLO, %",
       [](const LessonRunResult& run) -> std::optional<double> {
         if (run.report.requests == 0) return std::nullopt;
         return 100.0 * static_cast<double>(run.report.met_goal) /
                static_cast<double>(run.report.requests);
       }},
      {"ttft_mean", "TTFT, mean, ms", metric_of(&Report::ttft, &Summary::mean)},
      {"ttft_p50", "TTFT, p50, ms", metric_of(&Report::ttft, &Summary::p50)},
      {"ttft_p99", "TTFT, p99, ms", metric_of(&Report::ttft, &Summary::p99)},
      {"tbt_mean", "TBT, mean, ms", metric_of(&Report::tbt, &Summary::mean)},
      {"tbt_p50", "TBT, p50, ms", metric_of(&Report::tbt, &Summary::p50)},
      {"tbt_p99", "TBT, p99, ms", metric_of(&Report::tbt, &Summary::p99)},
      {"tpot_mean", "TPOT, mean, ms", metric_of(&Report::tpot, &Summary::mean)},
      {"tpot_p99", "TPOT, p99, ms", metric_of(&Report::tpot, &Summary::p99)},
      {"e2e_mean", "end to end, mean, ms", metric_of(&Report::e2e, &Summary::mean)},
      {"e2e_p99", "end to end, p99, ms", metric_of(&Report::e2e, &Summary::p99)},
      {"busy", "GPU busy, % of the time", metric_of(&Report::busy_share, kPercent)},
      {"occupancy", "occupancy, % of max-seqs", metric_of(&Report::occupancy, kPercent)},
      {"padding", "padding, % of computed rows", metric_of(&Report::padding_share, kPercent)},
      {"kv_used", "KV blocks in use, % of the pool", metric_of(&Report::kv_used_share, kPercent)},
      {"kv_waste", "KV waste, % of allocated token places",
       metric_of(&Report::kv_waste_share, kPercent)},
      {"kv_waste_tokens", "KV waste, tokens per sequence",
       metric_of(&Report::kv_waste_tokens_per_sequence)},
      {"prefix_hits", "prefix cache hits, % of prompt tokens",
       metric_of(&Report::prefix_hit_share, kPercent)},
      {"preemptions", "preemptions",
       [](const LessonRunResult& run) { return static_cast<double>(run.report.preemptions()); }},
      {"swapped_mb", "swapped out and in, MB",
       [](const LessonRunResult& run) {
         return static_cast<double>(run.report.swaps.out_bytes + run.report.swaps.in_bytes) * 1e-6;
       }},
      {"steps", "steps", metric_of(&Report::steps)},
      {"prompt_tokens", "prompt tokens", metric_of(&Report::prompt_tokens)},
      {"tokens", "generated tokens", metric_of(&Report::generated_tokens)},
      {"weight_mb", "weights, MB",
       [](const LessonRunResult& run) { return run.weight_bytes * 1e-6; }},
      {"accepted", "guesses accepted, %",
       [](const LessonRunResult& run) -> std::optional<double> {
         if (!run.accepted_share) return std::nullopt;
         return *run.accepted_share * kPercent;
       }},
      {"logprob", "log-probability per token",
       [](const LessonRunResult& run) { return run.logprob; }},
      {"perplexity", "perplexity", [](const LessonRunResult& run) { return run.perplexity; }},
  };
}

std::optional<double> best_setting(const Lesson& lesson, const LessonResults& results,
                                   std::string_view setting) {
  std::vector<SweepPoint> points;
  for (size_t i = 0; i < results.runs.size(); ++i) {
    const LessonSettings& set = lesson.runs[i].settings;
    points.push_back({setting == kBestSettings[0] ? set.max_sequences : set.max_step_tokens,
                      results.runs[i].report});
  }
  const std::optional<size_t> best = best_point(points, lesson.goal_on(results.simulated));
  return best ? static_cast<double>(points[*best].value) : 0;
}

}  // namespace

std::span<const LessonMetric> lesson_metrics() {
  static const std::vector<LessonMetric> metrics = make_lesson_metrics();
  return metrics;
}

const LessonMetric* find_metric(std::string_view name) {
  const std::span<const LessonMetric> all = lesson_metrics();
  const auto place = std::ranges::find(all, name, &LessonMetric::name);
  return place == all.end() ? nullptr : &*place;
}

std::span<const std::string_view> best_settings() { return kBestSettings; }

std::optional<double> look_up(const Lesson& lesson, const LessonResults& results,
                              const Measure::Number& number) {
  if (number.metric == kBestMetric) return best_setting(lesson, results, number.run);
  const LessonMetric* const metric = find_metric(number.metric);
  const auto run = std::ranges::find(results.runs, number.run, &LessonRunResult::name);
  if (metric == nullptr || run == results.runs.end()) return std::nullopt;
  return metric->read(*run);
}

Result<LessonAnswer> answer_of(const Lesson& lesson, const LessonResults& results) {
  const auto find = [&](const Measure::Number& number) { return look_up(lesson, results, number); };
  for (const LessonRunResult& run : results.runs)
    if (const uint64_t lost = run.report.failed + run.report.refused; lost > 0)
      return Error{ErrorKind::kInternal, fmt::format("{} of {} requests of the run {} failed", lost,
                                                     run.report.requests, run.name)};
  const std::optional<double> measured = lesson.measure.value(find);
  if (!measured)
    return Error{ErrorKind::kInternal,
                 fmt::format("the runs did not measure {}", lesson.measure.text())};
  LessonAnswer answer{.measured = *measured};
  for (const LessonChoice& choice : lesson.choices)
    if (choice.holds(*measured)) answer.letter = choice.letter;
  for (const MeasuredText& paragraph : lesson.answer)
    if (std::optional<std::string> filled = paragraph.fill(find))
      answer.paragraphs.push_back(*std::move(filled));
  return answer;
}

std::string verdict(const Lesson& lesson, const LessonAnswer& answer, char prediction) {
  const LessonChoice& right = *lesson.choice(answer.letter);
  const std::string unit = lesson.unit.empty() ? std::string() : " " + lesson.unit;
  const std::string measured =
      fmt::format("Measured: {}{}. That is {}, {}.", format_measured(answer.measured), unit,
                  right.letter, right.text);
  const LessonChoice* const predicted = lesson.choice(prediction);
  if (predicted == nullptr) return measured;
  if (prediction == answer.letter) return measured + " Your prediction was right.";
  return fmt::format("{} You predicted {}, {} ({}).", measured, predicted->letter, predicted->text,
                     describe_range(*predicted, lesson.unit));
}

}  // namespace hearth
