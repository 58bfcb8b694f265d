// Turns the runs of a lesson into what engines take: requests, policies, limits. Pure.
#pragma once

#include <string>
#include <vector>

#include "engine/decoding/beam_options.h"
#include "engine/session.h"
#include "tools/lessons/lesson.h"
#include "tools/replay/modelled_device.h"
#include "tools/replay/replay_target.h"
#include "tools/replay/trace.h"

namespace hearth {

// The requests of a run, on the modelled device or a real one.
Trace lesson_trace(const Lesson& lesson, const LessonRun& run, bool modelled);

// The run's policy, and its limits where it sets any; others, and those beyond `most`, are `most`.
PlannedReplay plan_lesson_run(const LessonRun& run, const SchedulerLimits& most);
BeamOptions lesson_beams(const LessonSettings& settings);

// What all runs with these weights need together: room for the largest.
SessionOptions lesson_session(const Lesson& lesson, const std::string& weights,
                              SessionOptions options);
ModelledLimits lesson_limits(const Lesson& lesson);
// The card with the model's weights in this format; empty: as it is.
ModelledDevice lesson_device(const std::string& weights);

// The distinct weight formats of the runs, in their order.
std::vector<std::string> lesson_weights(const Lesson& lesson);

// Whether an engine that is running already can run it: only policies and limits change. Otherwise
// weights, speculation or decoding do.
bool changes_only_scheduling(const Lesson& lesson);

}  // namespace hearth
