// Runs a lesson: each of its runs on a new engine, on a real device or on the modelled one in
// virtual time, where every run gives the same numbers.
#pragma once

#include <string>

#include "engine/session.h"
#include "runtime/result.h"
#include "tools/lessons/lesson.h"
#include "tools/lessons/lesson_results.h"
#include "tools/progress.h"

namespace hearth {

struct LessonPlace {
  bool simulate = false;
  std::string model;        // as -m takes it; empty: the built-in one
  SessionOptions session;   // device; limits are the lesson's
  ProgressOutput progress;  // by default, none is shown
};

// Blocks until all runs have ended.
Result<LessonResults> run_lesson(const Lesson& lesson, const LessonPlace& place);

}  // namespace hearth
