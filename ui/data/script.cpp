#include "ui/data/script.h"

#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>

#include <fmt/format.h>

namespace hearth {
namespace {

std::optional<double> number(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// Splits a line into words; returns nothing if a quote is not closed.
std::optional<std::vector<std::string>> split_words(std::string_view line) {
  std::vector<std::string> words;
  size_t i = 0;
  while (true) {
    while (i < line.size() && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r')) ++i;
    if (i == line.size() || line[i] == '#') return words;
    std::string word;
    if (line[i] == '"') {
      for (++i; i < line.size() && line[i] != '"'; ++i) {
        if (line[i] == '\\' && i + 1 < line.size()) {
          ++i;
          word += line[i] == 'n' ? '\n' : line[i];
        } else {
          word += line[i];
        }
      }
      if (i == line.size()) return std::nullopt;
      ++i;
    } else {
      while (i < line.size() && line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
        word += line[i++];
    }
    words.push_back(std::move(word));
  }
}

struct ActionSyntax {
  std::string_view name;
  ScriptAction action;
  size_t min_words, max_words;  // after the name
};
constexpr std::array kActions = {
    ActionSyntax{"click", ScriptAction::kClick, 1, 2},
    ActionSyntax{"double-click", ScriptAction::kDoubleClick, 1, 2},
    ActionSyntax{"right-click", ScriptAction::kRightClick, 1, 2},
    ActionSyntax{"hover", ScriptAction::kHover, 1, 2},
    ActionSyntax{"scroll", ScriptAction::kScroll, 2, 2},
    ActionSyntax{"type", ScriptAction::kType, 1, 1},
    ActionSyntax{"key", ScriptAction::kKey, 1, 1},
    ActionSyntax{"wait", ScriptAction::kWait, 3, 4},
    ActionSyntax{"expect", ScriptAction::kExpect, 3, 3},
    ActionSyntax{"wait-item", ScriptAction::kWaitItem, 1, 2},
    ActionSyntax{"frames", ScriptAction::kFrames, 1, 1},
    ActionSyntax{"seconds", ScriptAction::kSeconds, 1, 1},
    ActionSyntax{"rate", ScriptAction::kRate, 1, 1},
    ActionSyntax{"drop", ScriptAction::kDrop, 1, 1},
    ActionSyntax{"screenshot", ScriptAction::kScreenshot, 1, 1},
    ActionSyntax{"values", ScriptAction::kValues, 1, 1},
    ActionSyntax{"close", ScriptAction::kClose, 0, 0},
};

bool is_comparison(std::string_view word) {
  for (const std::string_view one : {"==", "!=", "<", "<=", ">", ">=", "contains"})
    if (word == one) return true;
  return false;
}

Result<ScriptStep> make_step(const std::vector<std::string>& words) {
  const auto wrong = [](std::string why) { return Error{ErrorKind::kInvalid, std::move(why)}; };
  const ActionSyntax* syntax = nullptr;
  for (const ActionSyntax& one : kActions)
    if (one.name == words[0]) syntax = &one;
  if (syntax == nullptr) return wrong(fmt::format("unknown action '{}'", words[0]));
  const size_t count = words.size() - 1;
  if (count < syntax->min_words || count > syntax->max_words)
    return wrong(fmt::format("'{}' takes {} argument{}, not {}", syntax->name, syntax->min_words,
                             syntax->min_words == 1 ? "" : "s", count));
  ScriptStep step{.action = syntax->action};
  const auto take_seconds = [&](size_t place) {
    if (place >= words.size()) return true;
    const std::optional<double> value = number(words[place]);
    if (!value || *value < 0) return false;
    step.seconds = *value;
    return true;
  };
  bool good = true;
  switch (step.action) {
    case ScriptAction::kWait:
    case ScriptAction::kExpect:
      if (!is_comparison(words[2]))
        return wrong(fmt::format("'{}' is not one of == != < <= > >= contains", words[2]));
      step.condition = {words[1], words[2], words[3]};
      good = take_seconds(4);
      break;
    case ScriptAction::kFrames:
    case ScriptAction::kSeconds:
    case ScriptAction::kRate:
      good = take_seconds(1);
      break;
    case ScriptAction::kClose:
      break;
    case ScriptAction::kScroll: {
      const std::optional<double> lines = number(words[2]);
      if (!lines) return wrong(fmt::format("'{}' is not a number of lines", words[2]));
      step.text = words[1];
      step.lines = *lines;
      break;
    }
    default:
      step.text = words[1];
      good = take_seconds(2);
  }
  if (!good) return wrong(fmt::format("'{}' is not a number of seconds", words.back()));
  return step;
}

}  // namespace

Result<std::vector<ScriptStep>> parse_script(std::string_view text) {
  std::vector<ScriptStep> steps;
  uint32_t line = 0;
  while (!text.empty()) {
    ++line;
    const size_t end = text.find('\n');
    const auto words = split_words(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!words)
      return Error{ErrorKind::kInvalid, fmt::format("line {}: a quote is not closed", line)};
    if (words->empty()) continue;
    Result<ScriptStep> step = make_step(*words);
    if (!step.ok())
      return Error{step.error().kind, fmt::format("line {}: {}", line, step.error().message)};
    step->line = line;
    steps.push_back(std::move(step).value());
  }
  return steps;
}

std::string to_text(const ScriptValue& value) {
  if (const double* one = std::get_if<double>(&value)) return fmt::format("{}", *one);
  return std::get<std::string>(value);
}

bool satisfies(const std::map<std::string, ScriptValue>& values, const Condition& condition) {
  const auto found = values.find(condition.name);
  if (found == values.end()) return false;
  const auto compare = [&](const auto& left, const auto& right) {
    const std::string_view comparison = condition.comparison;
    if (comparison == "==") return left == right;
    if (comparison == "!=") return left != right;
    if (comparison == "<") return left < right;
    if (comparison == "<=") return left <= right;
    if (comparison == ">") return left > right;
    return comparison == ">=" && left >= right;
  };
  const double* left = std::get_if<double>(&found->second);
  const std::optional<double> right = number(condition.value);
  if (condition.comparison != "contains" && left != nullptr && right) return compare(*left, *right);
  const std::string text = to_text(found->second);
  if (condition.comparison == "contains") return text.find(condition.value) != std::string::npos;
  return compare(text, condition.value);
}

}  // namespace hearth
