// Divides a lesson file into its fields. A field is a line "name: value" and the indented lines
// after it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace hearth {

// What is wrong with a line of a lesson.
struct LessonFault {
  uint32_t line = 0;  // from 1; 0: the file as a whole
  std::string reason;
};

struct LessonField {
  uint32_t line = 0;     // where it begins, from 1
  std::string name;      // "choice"
  std::string argument;  // "a" of "choice a:"; usually empty
  // The first line and the indented ones, joined to paragraphs. Paragraphs are separated by blank
  // lines; lines with more than two spaces in front keep the rest of them and stay on their own.
  std::string value;
};

// Lines that begin with # are comments. A fault ends it.
struct LessonFields {
  std::vector<LessonField> fields;
  std::vector<LessonFault> faults;  // at most one
};
LessonFields split_lesson(std::string_view text);

}  // namespace hearth
