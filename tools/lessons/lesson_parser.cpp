#include "tools/lessons/lesson_parser.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "engine/decoding/beam_options.h"
#include "engine/decoding/speculation/method.h"
#include "engine/near_words.h"
#include "engine/weights/in_quotes.h"
#include "engine/weights/quantize_mix.h"
#include "tools/lessons/lesson_fields.h"
#include "tools/lessons/lesson_results.h"
#include "tools/replay/parse_number.h"
#include "tools/replay/policy_spec.h"
#include "tools/replay/synthetic_trace.h"

namespace hearth {
namespace {

constexpr std::string_view kNameLetters = "abcdefghijklmnopqrstuvwxyz0123456789-";

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.find_first_not_of(kNameLetters) == std::string_view::npos &&
         name.front() != '-';
}

std::vector<std::string> words_of(std::string_view text, std::string_view separators) {
  std::vector<std::string> words;
  while (true) {
    const size_t begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const size_t end = std::min(text.find_first_of(separators), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::string unknown_word(std::string_view what, std::string_view word,
                         const std::vector<std::string>& known) {
  const std::vector<std::string> near = near_words(word, known);
  return fmt::format(
      "unknown {} {}{}", what, in_quotes(word),
      near.empty() ? fmt::format("; use {}", joined_with_or(known)) : did_you_mean(near));
}

// "below 1.5: text", "1.5 to 4: text", "from 4: text". Returns what is wrong.
std::string read_choice(const std::string& value, LessonChoice& choice) {
  const size_t colon = value.find(": ");
  const std::string range = value.substr(0, colon);
  const std::vector<std::string> words = words_of(range, " ");
  const auto bound = [&](size_t index) { return parse_number<double>(words[index]); };
  bool good = false;
  if (words.size() == 2 && words[0] == "below") good = (choice.below = bound(1)).has_value();
  if (words.size() == 2 && words[0] == "from") good = (choice.from = bound(1)).has_value();
  if (words.size() == 3 && words[1] == "to") {
    choice.from = bound(0);
    choice.below = bound(2);
    good = choice.from && choice.below && *choice.from < *choice.below;
  }
  if (!good)
    return fmt::format(
        "{} is not a range: use \"below X: TEXT\", \"X to Y: TEXT\" or \"from X: "
        "TEXT\"",
        in_quotes(range));
  if (colon == std::string::npos || words_of(value.substr(colon + 1), " ").empty())
    return "a choice has a text after its range, as in \"below 1.5: hardly any\"";
  choice.text = value.substr(value.find_first_not_of(' ', colon + 1));
  return {};
}

// Reads the fields into a lesson and then checks how they fit together.
class LessonReader {
 public:
  explicit LessonReader(std::string name) { lesson_.name = std::move(name); }

  std::optional<LessonFault> read(std::string_view text) {
    const LessonFields parts = split_lesson(text);
    if (!parts.faults.empty()) return parts.faults.front();
    for (const LessonField& field : parts.fields) {
      line_ = field.line;
      if (std::string wrong = take(field); !wrong.empty()) return LessonFault{line_, wrong};
    }
    line_ = 0;
    if (std::string wrong = missing(); !wrong.empty()) return LessonFault{line_, wrong};
    if (std::string wrong = finish(); !wrong.empty()) return LessonFault{line_, wrong};
    return std::nullopt;
  }
  Lesson take_lesson() { return std::move(lesson_); }

 private:
  static const std::vector<std::string>& plain_fields() {
    static const std::vector<std::string> names = {"title",  "summary",  "order",   "explanation",
                                                   "prompt", "score",    "slo",     "modelled-slo",
                                                   "engine", "question", "measure", "unit",
                                                   "show",   "answer",   "look-at", "try"};
    return names;
  }

  // Each returns what is wrong, or nothing.
  std::string take(const LessonField& field) {
    if (field.value.empty()) return fmt::format("{} has no text", in_quotes(field.name));
    if (field.name == "load" || field.name == "modelled-load") return take_load(field);
    if (field.name == "run") return take_run(field);
    if (field.name == "choice") return take_choice(field);
    if (std::ranges::find(plain_fields(), field.name) == plain_fields().end()) {
      std::vector<std::string> known = plain_fields();
      known.insert(known.end(), {"load", "modelled-load", "run", "choice"});
      return unknown_word("field", field.name, known);
    }
    if (!field.argument.empty())
      return fmt::format("{} takes no name before its colon", in_quotes(field.name));
    if (!seen_.insert(field.name).second)
      return fmt::format("{} is there twice", in_quotes(field.name));
    lines_[field.name] = field.line;
    return take_plain(field);
  }

  std::string take_plain(const LessonField& field) {
    const std::string& name = field.name;
    if (name == "title") lesson_.title = field.value;
    if (name == "summary") lesson_.summary = field.value;
    if (name == "explanation") lesson_.explanation = field.value;
    if (name == "prompt") lesson_.prompt = field.value;
    if (name == "score") lesson_.score = field.value;
    if (name == "question") lesson_.question = field.value;
    if (name == "unit") lesson_.unit = field.value;
    if (name == "look-at") lesson_.look_at = field.value;
    if (name == "try") lesson_.try_next = field.value;
    if (name == "engine") engine_ = field.value;
    if (name == "show") lesson_.shown = words_of(field.value, " ,");
    if (name == "order") {
      const auto order = parse_number<uint32_t>(field.value);
      if (!order) return fmt::format("{} is not a whole number", in_quotes(field.value));
      lesson_.order = *order;
    }
    if (name == "slo" || name == "modelled-slo") {
      Result<ServiceGoal> goal = parse_service_goal(field.value);
      if (!goal.ok()) return goal.error().message;
      if (name == "slo")
        lesson_.goal = *goal;
      else
        lesson_.modelled_goal = *goal;
    }
    if (name == "measure") {
      Result<Measure> measure = Measure::parse(field.value);
      if (!measure.ok()) return measure.error().message;
      lesson_.measure = std::move(*measure);
    }
    return name == "answer" ? take_answer(field) : std::string();
  }

  std::string take_answer(const LessonField& field) {
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find("\n\n"), rest.size());
      Result<MeasuredText> paragraph = MeasuredText::parse(rest.substr(0, end));
      if (!paragraph.ok()) return paragraph.error().message;
      lesson_.answer.push_back(std::move(*paragraph));
      rest.remove_prefix(std::min(end + 2, rest.size()));
    }
    return {};
  }

  // "load: ..." is the load without a name.
  std::string take_load(const LessonField& field) {
    if (!field.argument.empty() && !is_plain_name(field.argument))
      return fmt::format("{} is no name for a load: use a-z, 0-9 and -", in_quotes(field.argument));
    if (!field.value.starts_with(kSyntheticScheme))
      return fmt::format("a load begins with {}", kSyntheticScheme);
    const Result<Trace> trace = make_synthetic_trace(field.value);
    if (!trace.ok()) return trace.error().message;
    const auto place = std::ranges::find(lesson_.loads, field.argument, &LessonLoad::name);
    const bool modelled = field.name == "modelled-load";
    if (modelled) {
      if (place == lesson_.loads.end()) return "a modelled-load comes after the load it replaces";
      if (!place->modelled_trace.empty()) return "this modelled-load is there twice";
      place->modelled_trace = field.value;
    } else {
      if (place != lesson_.loads.end()) return "this load is there twice";
      lesson_.loads.push_back({.name = field.argument, .trace = field.value, .modelled_trace = {}});
    }
    return {};
  }

  std::string take_run(const LessonField& field) {
    if (!is_plain_name(field.argument))
      return "a run has a name of a-z, 0-9 and - before its colon, as in \"run one: continuous\"";
    if (std::ranges::find(lesson_.runs, field.argument, &LessonRun::name) != lesson_.runs.end())
      return fmt::format("there are two runs {}", in_quotes(field.argument));
    const size_t space = std::min(field.value.find(' '), field.value.size());
    LessonRun run;
    run.name = field.argument;
    run.policy = field.value.substr(0, space);
    run.written = field.value;
    if (const Result<PolicySpec> spec = parse_policy_spec(run.policy); !spec.ok())
      return spec.error().message;
    lesson_.runs.push_back(std::move(run));
    run_lines_.push_back(field.line);
    return {};
  }

  std::string take_choice(const LessonField& field) {
    const char expected = static_cast<char>('a' + lesson_.choices.size());
    if (field.argument != std::string(1, expected))
      return fmt::format("the next choice is {}, as in \"choice {}: below 1.5: hardly any\"",
                         expected, expected);
    LessonChoice choice{.letter = expected, .from = {}, .below = {}, .text = {}};
    if (std::string wrong = read_choice(field.value, choice); !wrong.empty()) return wrong;
    if (lesson_.choices.empty() ? choice.from.has_value()
                                : lesson_.choices.back().below != choice.from || !choice.from)
      return lesson_.choices.empty() ? "the first choice is \"below X\""
                                     : "choices have no gaps: each begins where the one before it "
                                       "ends";
    lesson_.choices.push_back(std::move(choice));
    last_choice_line_ = field.line;
    return {};
  }

  std::string missing() const {
    for (const char* name : {"title", "summary", "order", "explanation", "question", "measure",
                             "show", "answer", "look-at", "try"})
      if (!seen_.contains(name)) return fmt::format("the field {} is missing", in_quotes(name));
    if (lesson_.loads.empty()) return "there is no load";
    if (lesson_.runs.empty()) return "there is no run";
    if (lesson_.choices.size() < 2) return "there must be at least two choices";
    return {};
  }

  // REQUIRES: nothing is missing.
  std::string finish() {
    line_ = last_choice_line_;
    if (lesson_.choices.back().below) return "the last choice is \"from X\"";
    for (size_t i = 0; i < lesson_.runs.size(); ++i)
      if (std::string wrong = finish_run(lesson_.runs[i], run_lines_[i]); !wrong.empty())
        return wrong;
    line_ = lines_["show"];
    for (const std::string& name : lesson_.shown)
      if (find_metric(name) == nullptr) return unknown_metric(name);
    line_ = lines_["measure"];
    if (std::string wrong = check_numbers(lesson_.measure.numbers()); !wrong.empty()) return wrong;
    line_ = lines_["answer"];
    for (const MeasuredText& paragraph : lesson_.answer)
      if (std::string wrong = check_numbers(paragraph.numbers()); !wrong.empty()) return wrong;
    return {};
  }

  // The settings of the engine, then the run's own.
  std::string finish_run(LessonRun& run, uint32_t run_line) {
    line_ = lines_["engine"];
    if (std::string wrong = set_all(engine_, run.settings); !wrong.empty()) return wrong;
    line_ = run_line;
    if (std::string wrong = set_all(run.written.substr(run.policy.size()), run.settings);
        !wrong.empty())
      return wrong;
    if (std::ranges::find(lesson_.loads, run.settings.load, &LessonLoad::name) ==
        lesson_.loads.end())
      return run.settings.load.empty()
                 ? "the run does not say load=NAME, and there is no load without a name"
                 : fmt::format("there is no load {}", in_quotes(run.settings.load));
    return {};
  }

  static std::string set_all(std::string_view text, LessonSettings& settings) {
    for (const std::string& word : words_of(text, " ")) {
      const size_t equals = std::min(word.find('='), word.size());
      const std::string name = word.substr(0, equals);
      const std::string value = equals < word.size() ? word.substr(equals + 1) : std::string();
      if (std::string wrong = set_one(name, value, settings); !wrong.empty()) return wrong;
    }
    return {};
  }

  static std::string set_one(const std::string& name, const std::string& value,
                             LessonSettings& settings) {
    const auto whole = [&](uint32_t& target, uint32_t most) -> std::string {
      const auto number = parse_number<uint32_t>(value);
      if (!number || *number == 0 || *number > most)
        return fmt::format("{} takes a whole number from 1 to {}, not {}", name, most,
                           in_quotes(value));
      target = *number;
      return {};
    };
    if (name == "max-seqs") return whole(settings.max_sequences, 256);
    if (name == "max-step-tokens") return whole(settings.max_step_tokens, 4096);
    if (name == "kv-blocks") return whole(settings.kv_blocks, 65536);
    if (name == "draft-max") return whole(settings.draft_max, 32);
    if (name == "beams") return whole(settings.beams, kMaxBeams);
    if (name == "load") settings.load = value;
    if (name == "weights") {
      const std::optional<QuantizeType> type = find_quantize_type(value);
      if (!type)
        return fmt::format("unknown weights {}; use {}", in_quotes(value), quantize_type_names());
      settings.weights = type->name;
    }
    if (name == "speculate") {
      SpeculationOptions read;
      if (const auto wrong = read_method(value, read)) return *wrong;
      settings.speculate = value;
    }
    if (name == "temp") {
      const auto temperature = parse_number<double>(value);
      if (!temperature || *temperature < 0 || *temperature > 10)
        return fmt::format("temp takes a number from 0 to 10, not {}", in_quotes(value));
      settings.temperature = *temperature;
    }
    const std::vector<std::string> known = {"max-seqs",  "max-step-tokens", "kv-blocks",
                                            "draft-max", "beams",           "load",
                                            "weights",   "speculate",       "temp"};
    if (std::ranges::find(known, name) == known.end()) return unknown_word("setting", name, known);
    return {};
  }

  static std::string unknown_metric(const std::string& name) {
    std::vector<std::string> known;
    for (const LessonMetric& metric : lesson_metrics()) known.emplace_back(metric.name);
    return unknown_word("number", name, known);
  }

  std::string check_numbers(std::span<const Measure::Number> numbers) const {
    for (const Measure::Number& number : numbers) {
      if (number.metric == kBestMetric) {
        if (std::ranges::find(best_settings(), number.run) == best_settings().end())
          return "best() takes max-seqs or max-step-tokens";
        if (!seen_.contains("slo")) return "best() needs the field 'slo'";
        continue;
      }
      if (find_metric(number.metric) == nullptr) return unknown_metric(number.metric);
      std::vector<std::string> names;
      for (const LessonRun& run : lesson_.runs) names.push_back(run.name);
      if (std::ranges::find(names, number.run) == names.end())
        return unknown_word("run", number.run, names);
    }
    return {};
  }

  Lesson lesson_;
  std::string engine_;  // settings of all runs
  std::set<std::string> seen_;
  std::map<std::string, uint32_t> lines_;
  std::vector<uint32_t> run_lines_;
  uint32_t line_ = 0, last_choice_line_ = 0;
};

}  // namespace

Result<Lesson> parse_lesson(std::string_view text, const std::string& name) {
  LessonReader reader(name);
  if (const std::optional<LessonFault> fault = reader.read(text))
    return invalid(fault->line == 0
                       ? fmt::format("lesson {}: {}", name, fault->reason)
                       : fmt::format("lesson {}, line {}: {}", name, fault->line, fault->reason));
  return reader.take_lesson();
}

}  // namespace hearth
