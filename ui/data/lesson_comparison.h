// The two runs of a lesson that the Compare panel can show side by side. Pure.
#pragma once

#include <optional>

#include "tools/lessons/lesson.h"
#include "ui/data/comparison.h"

namespace hearth {

// Its first and last run, if both have the same requests and differ in scheduling only; otherwise
// nothing. `most` are the limits of the device that will run it; without them, those that the
// lesson needs of the modelled device.
std::optional<ComparisonPlan> lesson_comparison(const Lesson& lesson,
                                                const std::optional<SchedulerLimits>& most);

}  // namespace hearth
