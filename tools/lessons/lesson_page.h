// A lesson as text for a terminal: its parts, in lines of at most `columns` characters. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "tools/lessons/lesson.h"
#include "tools/lessons/lesson_results.h"

namespace hearth {

// Paragraphs broken at words and indented; lines that begin with a space stay as they are.
std::string format_paragraphs(std::string_view text, uint32_t columns, uint32_t indent = 0);

// One line per lesson: its name and its title.
std::string format_lesson_list(std::span<const Lesson> lessons, uint32_t columns);
// Everything before the run: title, explanation, what is run, question and choices.
std::string format_lesson(const Lesson& lesson, bool simulated, uint32_t columns);
// One row per number that the lesson shows, one column per run. Rows that no run measured are left
// out.
std::string format_lesson_table(const Lesson& lesson, const LessonResults& results);
// The table and the answer. `prediction` 0: there was none.
std::string format_lesson_outcome(const Lesson& lesson, const LessonResults& results,
                                  const LessonAnswer& answer, char prediction, uint32_t columns);
// Everything after the run: the outcome, what to look at and what to try next.
std::string format_lesson_answer(const Lesson& lesson, const LessonResults& results,
                                 const LessonAnswer& answer, char prediction, uint32_t columns);

nlohmann::json to_json(const Lesson& lesson, const LessonResults& results,
                       const LessonAnswer& answer, char prediction);

}  // namespace hearth
