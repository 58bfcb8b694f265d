// hearth lesson: explains a notion, asks for a prediction, measures, and compares the two.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "engine/weights/in_quotes.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/lessons/lesson_library.h"
#include "tools/lessons/lesson_page.h"
#include "tools/lessons/lesson_runner.h"
#include "tools/progress.h"
#include "tools/terminal_columns.h"

namespace hearth {
namespace {

constexpr uint32_t kWidestLines = 100;  // longer ones are hard to read

uint32_t page_columns() {
  const uint32_t columns = terminal_columns(STDOUT_FILENO);
  return columns == 0 ? kWidestLines : std::min(columns, kWidestLines);
}

// "a, b or c".
std::string lesson_letters(const Lesson& lesson) {
  std::string letters;
  for (size_t i = 0; i < lesson.choices.size(); ++i)
    letters += fmt::format("{}{}",
                           i == 0                          ? ""
                           : i + 1 < lesson.choices.size() ? ", "
                                                           : " or ",
                           lesson.choices[i].letter);
  return letters;
}

class LessonCommand : public Command {
 public:
  LessonCommand()
      : Command(CommandGroup::kServe, "lesson", "Learn how serving works: predict, run, compare") {}

  void declare(Options& options) override {
    options.example("hearth lesson --list");
    options.example("hearth lesson why-batch");
    options.example("hearth lesson paging --simulate --answer b");
    const Option& name = options.add("NAME", &name_, "A lesson that --list shows, or a .txt file");
    options.add("--list", &list_, "List the lessons in their order, as without a name")
        .excludes(name);
    options
        .add("--answer LETTER", &answer_,
             "Your prediction; without it you are asked, if there is a terminal")
        .needs(name)
        .check([](const std::string& text) {
          return text.size() == 1 && text[0] >= 'a' && text[0] <= 'z' ? "" : "give one letter";
        });
    Option& simulate = options.add(
        "--simulate", &place_.simulate,
        "Simulate a GPU in virtual time: needs no model and gives the same numbers everywhere");
    simulate.needs(name);
    options.add("--brief", &brief_, "Only run it and print the measured answer").needs(name);
    add_json_option(options, &json_).needs(name);
    options.group("Model");
    simulate.excludes(add_model_option(options, &place_.model).needs(name));
    simulate.excludes(add_device_option(options, &place_.session.device).needs(name));
  }

  Status run() override {
    if (name_.empty()) return print_list();
    HEARTH_ASSIGN(const Lesson lesson, find_lesson(name_));
    HEARTH_TRY(check_answer(lesson));
    place_.progress = ProgressOutput::standard_error(json_);
    const uint32_t columns = page_columns();
    const bool teach = !json_ && !brief_;
    if (teach) fmt::print("{}", format_lesson(lesson, place_.simulate, columns));
    char prediction = answer_.empty() ? '\0' : answer_.front();
    if (prediction == 0 && teach) prediction = ask(lesson);
    HEARTH_ASSIGN(const LessonResults results, run_lesson(lesson, place_));
    HEARTH_ASSIGN(const LessonAnswer answer, answer_of(lesson, results));
    if (json_) {
      fmt::print("{}\n", to_json(lesson, results, answer, prediction)
                             .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      return {};
    }
    if (brief_) {
      fmt::print("{}", format_lesson_outcome(lesson, results, answer, prediction, columns));
      return {};
    }
    fmt::print("{}", format_lesson_answer(lesson, results, answer, prediction, columns));
    return print_next(lesson);
  }

 private:
  Status print_list() const {
    HEARTH_ASSIGN(const std::vector<Lesson> lessons, all_lessons());
    fmt::print("{}\nhearth lesson NAME runs one; add --simulate to run it without a model.\n",
               format_lesson_list(lessons, page_columns()));
    return {};
  }

  Status check_answer(const Lesson& lesson) const {
    if (answer_.empty() || lesson.choice(answer_.front()) != nullptr) return {};
    return invalid(
        fmt::format("--answer {}: the choices are {}", in_quotes(answer_), lesson_letters(lesson)));
  }

  // Asks until the answer is one of the choices or empty; 0: none. Without a terminal it reads a
  // pipe or a file, and does not wait for a pipe that stays empty.
  static char ask(const Lesson& lesson) {
    const bool terminal = isatty(STDIN_FILENO) != 0;
    constexpr int kPipeMilliseconds = 500;
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (!terminal && poll(&input, 1, kPipeMilliseconds) <= 0) return 0;
    char line[64];
    while (true) {
      if (terminal) {
        fmt::print("\nYour prediction ({}; Enter to skip): ", lesson_letters(lesson));
        std::fflush(stdout);
      }
      if (std::fgets(line, sizeof line, stdin) == nullptr) return 0;
      const std::string_view text(line);
      const size_t first = text.find_first_not_of(" \t\r\n");
      if (first == std::string_view::npos) return 0;
      const char letter = static_cast<char>(text[first] | 0x20);  // lower case
      if (lesson.choice(letter) != nullptr) return letter;
      if (!terminal) return 0;
    }
  }

  static Status print_next(const Lesson& lesson) {
    HEARTH_ASSIGN(const std::vector<Lesson> lessons, all_lessons());
    for (const Lesson& other : lessons)
      if (other.order > lesson.order) {
        fmt::print("\nThe next lesson is \"{}\": hearth lesson {}\n", other.title, other.name);
        break;
      }
    return {};
  }

  std::string name_, answer_;
  LessonPlace place_;
  bool list_ = false, brief_ = false, json_ = false;
};

LessonCommand lesson_command;

}  // namespace
}  // namespace hearth
