// The lessons: those in the program, which the build takes from lessons/*.txt, and files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"
#include "tools/lessons/lesson.h"

namespace hearth {

struct LessonFile {
  std::string_view name;  // of the file, without ".txt"
  std::string_view text;
};
// As the build found them, by name.
std::span<const LessonFile> lesson_files();

// Reads all of them, in the order that they give. All can be parsed, as a test checks.
Result<std::vector<Lesson>> all_lessons();

// The lesson of that name, or a file: a name that ends in ".txt" or has a '/' is a path. An error
// lists the lessons that may have been meant.
Result<Lesson> find_lesson(const std::string& name);

}  // namespace hearth
