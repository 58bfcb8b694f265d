#include "tools/lessons/lesson_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/weights/formats.h"
#include "engine/weights/quantize_mix.h"
#include "tools/replay/policy_spec.h"
#include "tools/replay/synthetic_trace.h"

namespace hearth {
namespace {

// The parser has read all of these before.
Policy policy_of(const LessonRun& run) {
  const Result<PolicySpec> spec = parse_policy_spec(run.policy);
  return spec->apply(spec->base);
}

bool any_run_swaps(const Lesson& lesson) {
  return std::ranges::any_of(lesson.runs, [](const LessonRun& run) {
    return policy_of(run).preemption == Preemption::kSwap;
  });
}

SpeculationOptions speculation_of(const LessonSettings& settings) {
  SpeculationOptions options;
  if (!settings.speculate.empty()) read_method(settings.speculate, options);
  options.max_proposed = settings.draft_max;
  return options;
}

// The largest value of a limit; 0, the device's own, if a run does not set it.
uint32_t largest_limit(const Lesson& lesson, uint32_t LessonSettings::*limit) {
  uint32_t most = 0;
  for (const LessonRun& run : lesson.runs) {
    if (run.settings.*limit == 0) return 0;
    most = std::max(most, run.settings.*limit);
  }
  return most;
}

uint32_t most_sequences(const Lesson& lesson) {
  uint32_t most = 0;
  for (const LessonRun& run : lesson.runs)
    most = std::max({most, run.settings.max_sequences, run.settings.beams});
  return most;
}

uint32_t limit_or(uint32_t wanted, uint32_t most) {
  return wanted == 0 ? most : std::min(wanted, most);
}

}  // namespace

Trace lesson_trace(const Lesson& lesson, const LessonRun& run, bool modelled) {
  const LessonLoad& load = lesson.load(run.settings.load);
  const std::string& text =
      modelled && !load.modelled_trace.empty() ? load.modelled_trace : load.trace;
  return make_synthetic_trace(text).value();
}

PlannedReplay plan_lesson_run(const LessonRun& run, const SchedulerLimits& most) {
  PlannedReplay planned{.label = run.name, .policy = policy_of(run), .limits = most};
  const LessonSettings& settings = run.settings;
  planned.limits.max_sequences = limit_or(settings.max_sequences, most.max_sequences);
  planned.limits.max_step_tokens = limit_or(settings.max_step_tokens, most.max_step_tokens);
  planned.limits.pool_blocks = limit_or(settings.kv_blocks, most.pool_blocks);
  planned.speculation = speculation_of(settings);
  return planned;
}

BeamOptions lesson_beams(const LessonSettings& settings) { return {.beams = settings.beams}; }

SessionOptions lesson_session(const Lesson& lesson, const std::string& weights,
                              SessionOptions options) {
  if (const uint32_t most = most_sequences(lesson); most > 0) options.max_sequences = most;
  options.max_step_tokens = largest_limit(lesson, &LessonSettings::max_step_tokens);
  options.kv_blocks = largest_limit(lesson, &LessonSettings::kv_blocks);
  if (any_run_swaps(lesson)) options.swap_bytes = std::max(options.swap_bytes, kDefaultSwapBytes);
  if (!lesson.score.empty()) options.scored_rows = kScoredRows;
  // Room for proposals; runs without speculation do not use it.
  for (const LessonRun& run : lesson.runs)
    if (run.settings.weights == weights && !run.settings.speculate.empty())
      options.speculation = speculation_of(run.settings);
  return options;
}

ModelledLimits lesson_limits(const Lesson& lesson) {
  ModelledLimits limits;
  if (const uint32_t most = most_sequences(lesson); most > 0) limits.max_sequences = most;
  limits.max_step_tokens = largest_limit(lesson, &LessonSettings::max_step_tokens);
  limits.kv_blocks = largest_limit(lesson, &LessonSettings::kv_blocks);
  if (any_run_swaps(lesson)) limits.swap_bytes = kDefaultSwapBytes;
  return limits;
}

ModelledDevice lesson_device(const std::string& weights) {
  ModelledDevice device;
  if (weights.empty()) return device;
  const FormatInfo& format = format_info(find_quantize_type(weights)->base);
  device.bytes_per_weight = static_cast<double>(format.block_bytes) / format.block_weights;
  device.model += fmt::format(" in {}", weights);
  return device;
}

std::vector<std::string> lesson_weights(const Lesson& lesson) {
  std::vector<std::string> formats;
  for (const LessonRun& run : lesson.runs)
    if (std::ranges::find(formats, run.settings.weights) == formats.end())
      formats.push_back(run.settings.weights);
  return formats;
}

bool changes_only_scheduling(const Lesson& lesson) {
  return lesson.score.empty() && std::ranges::all_of(lesson.runs, [](const LessonRun& run) {
           const LessonSettings& settings = run.settings;
           return settings.weights.empty() && settings.speculate.empty() && settings.beams == 1 &&
                  settings.temperature == 0;
         });
}

}  // namespace hearth
