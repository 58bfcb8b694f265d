#include "tools/lessons/lesson.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace hearth {

const LessonLoad& Lesson::load(std::string_view load_name) const {
  const auto place = std::ranges::find(loads, load_name, &LessonLoad::name);
  assert(place != loads.end());
  return *place;
}

const LessonChoice* Lesson::choice(char letter) const {
  const auto place = std::ranges::find(choices, letter, &LessonChoice::letter);
  return place == choices.end() ? nullptr : &*place;
}

std::string describe_range(const LessonChoice& choice, std::string_view unit) {
  const std::string after = unit.empty() ? std::string() : fmt::format(" {}", unit);
  if (!choice.from) return fmt::format("below {}{}", *choice.below, after);
  if (!choice.below) return fmt::format("{}{} or more", *choice.from, after);
  return fmt::format("{} to {}{}", *choice.from, *choice.below, after);
}

}  // namespace hearth
