#include "tools/lessons/lesson_page.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "tools/chat/word_wrapper.h"

namespace hearth {
namespace {

constexpr uint32_t kPageIndent = 2;

std::string lesson_heading(std::string_view title) { return fmt::format("\n{}\n", title); }

std::string format_choices(const Lesson& lesson, uint32_t columns) {
  std::string text;
  for (const LessonChoice& choice : lesson.choices)
    text += format_paragraphs(
        fmt::format("{}) {} ({})", choice.letter, choice.text, describe_range(choice, lesson.unit)),
        columns, 2 * kPageIndent);
  return text;
}

// Some of a story is enough to see what kind it is.
std::string beginning_of(std::string_view text) {
  constexpr size_t kMostBytes = 300;
  std::string line;
  text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
  for (const char c : text.substr(0, kMostBytes)) line += c == '\n' ? ' ' : c;
  if (text.size() <= kMostBytes) return line;
  return line.substr(0, line.find_last_of(' ')) + " ...";
}

std::string format_texts(const LessonResults& results, uint32_t columns) {
  std::string text;
  for (const LessonRunResult& run : results.runs) {
    if (run.text.empty()) continue;
    text += format_paragraphs(fmt::format("{}: {}", run.name, beginning_of(run.text)), columns,
                              kPageIndent);
  }
  return text.empty() ? text : lesson_heading("What they wrote") + text;
}

}  // namespace

std::string format_paragraphs(std::string_view text, uint32_t columns, uint32_t indent) {
  const std::string margin(indent, ' ');
  const uint32_t room = columns == 0 ? 0 : std::max(20u, columns - std::min(columns, indent));
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string wrapped =
        line.empty() || line.front() == ' ' ? std::string(line) : wrap_words(line, room);
    std::string_view rest = wrapped;
    do {
      const size_t stop = std::min(rest.find('\n'), rest.size());
      if (stop > 0) result += margin;
      result += rest.substr(0, stop);
      result += '\n';
      rest.remove_prefix(std::min(stop + 1, rest.size()));
    } while (!rest.empty());
  }
  return result;
}

std::string format_lesson_list(std::span<const Lesson> lessons, uint32_t columns) {
  size_t width = 0;
  for (const Lesson& lesson : lessons) width = std::max(width, lesson.name.size());
  std::string list;
  for (size_t i = 0; i < lessons.size(); ++i) {
    const std::string head = fmt::format("{:>2}  {:<{}}  ", i + 1, lessons[i].name, width);
    const auto indent = static_cast<uint32_t>(head.size());
    const std::string body = format_paragraphs(
        fmt::format("{} - {}", lessons[i].title, lessons[i].summary), columns, indent);
    list += head + body.substr(indent);
  }
  return list;
}

std::string format_lesson(const Lesson& lesson, bool simulated, uint32_t columns) {
  std::string page = fmt::format("{}\n\n", lesson.title);
  page += format_paragraphs(lesson.explanation, columns);
  page += lesson_heading("The experiment");
  for (const LessonLoad& load : lesson.loads) {
    const std::string& trace =
        simulated && !load.modelled_trace.empty() ? load.modelled_trace : load.trace;
    page += fmt::format("  load{}{}: {}\n", load.name.empty() ? "" : " ", load.name, trace);
  }
  for (const LessonRun& run : lesson.runs)
    page += fmt::format("  run {}: {}\n", run.name, run.written);
  page += lesson_heading("The question");
  page += format_paragraphs(lesson.question, columns, kPageIndent);
  return page + format_choices(lesson, columns);
}

std::string format_lesson_table(const Lesson& lesson, const LessonResults& results) {
  struct TableRow {
    std::string label;
    std::vector<std::string> cells;
  };
  std::vector<TableRow> rows;
  for (const std::string& name : lesson.shown) {
    const LessonMetric& metric = *find_metric(name);
    TableRow row{.label = std::string(metric.label), .cells = {}};
    bool any = false;
    for (const LessonRunResult& run : results.runs) {
      const std::optional<double> value = metric.read(run);
      any = any || value.has_value();
      row.cells.push_back(value ? format_measured(*value) : "-");
    }
    if (any) rows.push_back(std::move(row));
  }
  size_t label_width = 0;
  for (const TableRow& row : rows) label_width = std::max(label_width, row.label.size());
  std::vector<size_t> widths;
  std::string table = fmt::format("  {:<{}}", "", label_width);
  for (size_t i = 0; i < results.runs.size(); ++i) {
    size_t width = results.runs[i].name.size();
    for (const TableRow& row : rows) width = std::max(width, row.cells[i].size());
    widths.push_back(width);
    table += fmt::format("  {:>{}}", results.runs[i].name, width);
  }
  table += '\n';
  for (const TableRow& row : rows) {
    table += fmt::format("  {:<{}}", row.label, label_width);
    for (size_t i = 0; i < row.cells.size(); ++i)
      table += fmt::format("  {:>{}}", row.cells[i], widths[i]);
    table += '\n';
  }
  return table;
}

std::string format_lesson_outcome(const Lesson& lesson, const LessonResults& results,
                                  const LessonAnswer& answer, char prediction, uint32_t columns) {
  std::string page = results.simulated ? std::string("What happened on the modelled card\n")
                                       : fmt::format("What happened, with {} on {}\n",
                                                     results.model, results.device);
  page += format_lesson_table(lesson, results);
  page += format_texts(results, columns);
  page += lesson_heading("The answer");
  page += format_paragraphs(verdict(lesson, answer, prediction), columns, kPageIndent);
  for (const std::string& paragraph : answer.paragraphs)
    page += "\n" + format_paragraphs(paragraph, columns, kPageIndent);
  return page;
}

std::string format_lesson_answer(const Lesson& lesson, const LessonResults& results,
                                 const LessonAnswer& answer, char prediction, uint32_t columns) {
  return "\n" + format_lesson_outcome(lesson, results, answer, prediction, columns) +
         lesson_heading("What to look at") +
         format_paragraphs(lesson.look_at, columns, kPageIndent) + lesson_heading("Try next") +
         format_paragraphs(lesson.try_next, columns, kPageIndent);
}

nlohmann::json to_json(const Lesson& lesson, const LessonResults& results,
                       const LessonAnswer& answer, char prediction) {
  nlohmann::json json = {{"lesson", lesson.name},
                         {"title", lesson.title},
                         {"simulated", results.simulated},
                         {"model", results.model},
                         {"device", results.device},
                         {"question", lesson.question},
                         {"measure", lesson.measure.text()},
                         {"measured", answer.measured},
                         {"answer", std::string(1, answer.letter)},
                         {"explanation", answer.paragraphs}};
  for (const LessonChoice& choice : lesson.choices)
    json["choices"][std::string(1, choice.letter)] =
        fmt::format("{} ({})", choice.text, describe_range(choice, lesson.unit));
  if (prediction != 0) {
    json["prediction"] = std::string(1, prediction);
    json["right"] = prediction == answer.letter;
  }
  for (const LessonRunResult& run : results.runs) {
    nlohmann::json entry = {{"run", run.name}};
    for (const LessonMetric& metric : lesson_metrics())
      if (const std::optional<double> value = metric.read(run))
        entry[std::string(metric.name)] = *value;
    if (!run.text.empty()) entry["text"] = run.text;
    json["runs"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace hearth
