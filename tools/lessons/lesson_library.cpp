#include "tools/lessons/lesson_library.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "engine/near_words.h"
#include "engine/weights/in_quotes.h"
#include "tools/lessons/lesson_parser.h"
#include "tools/read_text.h"

namespace hearth {
namespace {

constexpr std::string_view kLessonSuffix = ".txt";

Result<Lesson> read_lesson_file(const std::string& path) {
  HEARTH_ASSIGN(const std::string text, read_text_file(path));
  return parse_lesson(text, path);
}

}  // namespace

Result<std::vector<Lesson>> all_lessons() {
  std::vector<Lesson> lessons;
  for (const LessonFile& file : lesson_files()) {
    HEARTH_ASSIGN(Lesson lesson, parse_lesson(file.text, std::string(file.name)));
    lessons.push_back(std::move(lesson));
  }
  std::ranges::stable_sort(lessons, {}, &Lesson::order);
  return lessons;
}

Result<Lesson> find_lesson(const std::string& name) {
  if (name.ends_with(kLessonSuffix) || name.find('/') != std::string::npos)
    return read_lesson_file(name);
  std::vector<std::string> names;
  for (const LessonFile& file : lesson_files()) {
    if (file.name == name) return parse_lesson(file.text, name);
    names.emplace_back(file.name);
  }
  const std::string meant = did_you_mean(near_words(name, names));
  return Error{ErrorKind::kNotFound,
               fmt::format("there is no lesson {}{} hearth lesson --list shows all",
                           in_quotes(name), meant.empty() ? ";" : meant)};
}

}  // namespace hearth
