#include "ui/data/lesson_comparison.h"

#include <algorithm>

#include "tools/lessons/lesson_plan.h"

namespace hearth {

std::optional<ComparisonPlan> lesson_comparison(const Lesson& lesson,
                                                const std::optional<SchedulerLimits>& most) {
  if (lesson.runs.size() < 2 || !changes_only_scheduling(lesson)) return std::nullopt;
  const LessonRun &first = lesson.runs.front(), &last = lesson.runs.back();
  if (first.settings.load != last.settings.load) return std::nullopt;
  const LessonLoad& load = lesson.load(first.settings.load);
  const SchedulerLimits limits =
      most.value_or(scheduler_limits(ModelledDevice{}, lesson_limits(lesson)));
  ComparisonPlan plan{.sides = {plan_lesson_run(first, limits), plan_lesson_run(last, limits)},
                      .trace = lesson_trace(lesson, first, !most),
                      .requests = load.trace};
  if (!most && !load.modelled_trace.empty()) plan.requests = load.modelled_trace;
  plan.sides[0].label = first.name;
  plan.sides[1].label = last.name;
  const uint64_t pool_blocks =
      std::min(plan.sides[0].limits.pool_blocks, plan.sides[1].limits.pool_blocks);
  const uint64_t longest = std::min<uint64_t>(limits.context, pool_blocks * kTokensPerBlock);
  if (longest < 2) return std::nullopt;
  clip_lengths(plan.trace, static_cast<uint32_t>(longest));
  return plan;
}

}  // namespace hearth
