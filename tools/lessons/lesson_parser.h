// Reads lessons from text; lessons/README.md has the format. Pure.
#pragma once

#include <string>
#include <string_view>

#include "runtime/result.h"
#include "tools/lessons/lesson.h"

namespace hearth {

// `name` becomes the lesson's name. Strict: every field, setting, metric and name of a run is
// checked, and the choices must cover every number once. The error is one line that begins with
// `name` and the number of the line that is wrong.
Result<Lesson> parse_lesson(std::string_view text, const std::string& name);

}  // namespace hearth
