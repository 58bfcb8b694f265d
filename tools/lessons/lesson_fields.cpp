#include "tools/lessons/lesson_fields.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"

namespace hearth {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view without_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Adds a line of text to a field's value.
void add_text_line(std::string& value, std::string_view line, bool after_blank) {
  const bool as_is = line.starts_with("   ");
  const std::string_view words = without_blanks(line);
  if (!value.empty()) {
    const size_t last_line = value.rfind('\n') + 1;
    const bool last_as_is = last_line < value.size() && value[last_line] == ' ';
    if (after_blank)
      value += "\n\n";
    else
      value += as_is || last_as_is ? '\n' : ' ';
  }
  if (!as_is) {
    value += words;
    return;
  }
  line.remove_prefix(2);
  value += line.substr(0, line.find_last_not_of(kBlanks) + 1);
}

// "choice a: below 1.2: hardly" begins a field. Returns why a line does not, or nothing.
std::string begin_field(std::string_view line, LessonField& field) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos)
    return fmt::format("{} is neither a field, such as \"title: ...\", nor indented",
                       in_quotes(without_blanks(line)));
  const std::string_view head = without_blanks(line.substr(0, colon));
  const size_t space = head.find(' ');
  field.name = head.substr(0, space);
  if (space != std::string_view::npos) field.argument = without_blanks(head.substr(space));
  field.value = without_blanks(line.substr(colon + 1));
  if (field.name.empty()) return "a field has no name before its colon";
  return {};
}

}  // namespace

LessonFields split_lesson(std::string_view text) {
  LessonFields result;
  uint32_t number = 0;
  bool after_blank = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.starts_with('#')) continue;
    if (without_blanks(line).empty()) {
      after_blank = true;
      continue;
    }
    if (line.find('\0') != std::string_view::npos || line.find('\t') != std::string_view::npos) {
      result.faults.push_back({number, "a tab or a zero byte; indent with spaces"});
      return result;
    }
    if (line.starts_with(' ')) {
      if (result.fields.empty()) {
        result.faults.push_back({number, "an indented line before the first field"});
        return result;
      }
      add_text_line(result.fields.back().value, line,
                    after_blank && !result.fields.back().value.empty());
    } else {
      LessonField field{.line = number};
      if (std::string reason = begin_field(line, field); !reason.empty()) {
        result.faults.push_back({number, std::move(reason)});
        return result;
      }
      result.fields.push_back(std::move(field));
    }
    after_blank = false;
  }
  return result;
}

}  // namespace hearth
