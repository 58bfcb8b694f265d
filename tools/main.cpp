// hearth: one program, one file per command (tools/commands/). It exits with 0 on success, with 2
// after a usage error and with 1 after any other failure; each failure is one line on stderr.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/near_words.h"
#include "engine/weights/in_quotes.h"
#include "runtime/log.h"
#include "tools/commands/command.h"
#include "tools/options/habits.h"
#include "tools/options/help_page.h"
#include "tools/standard_streams.h"
#ifdef HEARTH_DASHBOARD
#include "ui/window/display.h"
#endif

#ifndef HEARTH_VERSION
#define HEARTH_VERSION "unknown"
#endif

namespace {

constexpr int kUsageError = 2;

// Without a command: the dashboard if there is a display, a chat if there is a terminal, otherwise
// one short story, so that the first try always shows something.
const char* default_command_name() {
#ifdef HEARTH_DASHBOARD
  if (hearth::can_open_display()) return "dash";
#endif
  return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0 ? "chat" : "story";
}

// Libraries may throw what no command expects, such as std::bad_alloc.
hearth::Status outcome_of(hearth::Command& command) {
  try {
    return command.run();
  } catch (const std::exception& error) {
    return hearth::Error{hearth::ErrorKind::kInternal, error.what()};
  }
}

int exit_code(const hearth::Status& status, int failure = 1) {
  if (status.ok()) return 0;
  hearth::log_line(status.error().message);
  return failure;
}

int print(const std::string& text) {
  fmt::print("{}", text);
  return exit_code(hearth::finish_standard_output());
}

int run(hearth::Command& command, std::span<const std::string> arguments) {
  hearth::Options options("hearth " + command.name());
  command.declare(options);
  const hearth::Result<hearth::Options::Wish> wish = options.parse(arguments);
  if (!wish.ok()) return exit_code(wish.error(), kUsageError);
  if (*wish != hearth::Options::Wish::kRun)
    return print(
        hearth::HelpPage::text(options, command.about(), *wish == hearth::Options::Wish::kHelpAll));
  const int code = exit_code(outcome_of(command));
  return code != 0 ? code : exit_code(hearth::finish_standard_output());
}

struct Heading {
  hearth::CommandGroup group;
  std::string_view title;
};

constexpr Heading kHeadings[] = {{hearth::CommandGroup::kRun, "Run a model"},
                                 {hearth::CommandGroup::kServe, "Serve and watch"},
                                 {hearth::CommandGroup::kMeasure, "Measure"},
                                 {hearth::CommandGroup::kFiles, "Model files"}};

std::string help() {
  std::string page =
      "Hearth runs language models on the GPU you already own.\n\n"
      "Usage: hearth [COMMAND] [OPTIONS]\n\n"
      "With no command, Hearth opens the dashboard if there is a display, a chat if run in a\n"
      "terminal, and otherwise prints a short story.\n";
  for (const Heading& heading : kHeadings) {
    page += fmt::format("\n{}:\n", heading.title);
    for (const hearth::Command* command : hearth::Command::all())
      if (command->group() == heading.group)
        page += fmt::format("  {:<12}{}\n", command->name(), command->about());
  }
  return page +
         "\nExamples:\n"
         "  hearth run \"Once upon a time\"\n"
         "  hearth chat -m qwen2.5-0.5b-instruct-q8_0.gguf\n"
         "  hearth serve -m qwen2.5 --port 8080\n\n"
         "hearth COMMAND --help explains a command. Models are .gguf files and Hugging Face "
         "folders;\n"
         "those that hearth list shows can be given by name.\n";
}

std::string unknown_command(const std::string& wanted) {
  if (const auto hint = hearth::foreign_command_hint(wanted))
    return fmt::format("unknown command {}: {}", hearth::in_quotes(wanted), *hint);
  // An option before the command, as in "hearth -m model run".
  if (wanted.starts_with('-'))
    return fmt::format(
        "{}: options go after the command, as in hearth run -n 20 (see hearth --help)",
        hearth::in_quotes(wanted));
  std::vector<std::string> names;
  for (const hearth::Command* command : hearth::Command::all()) names.push_back(command->name());
  return fmt::format("unknown command {}{} (see hearth --help)", hearth::in_quotes(wanted),
                     hearth::did_you_mean(hearth::near_words(wanted, names)));
}

hearth::Command* find_command(const std::string& name) {
  for (hearth::Command* command : hearth::Command::all())
    if (command->name() == name) return command;
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  hearth::open_standard_streams();
  // Writing past a limit on the size of files (ulimit -f) is an error, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  std::vector<std::string> arguments(argv + 1, argv + std::max(argc, 1));
  if (arguments.empty()) arguments.push_back(default_command_name());
  // "hearth help run" is "hearth run --help".
  if (arguments[0] == "help" && arguments.size() > 1) arguments = {arguments[1], "--help"};
  const std::string& wanted = arguments[0];
  if (wanted == "--version") return print("hearth " HEARTH_VERSION "\n");
  if (wanted == "help" || wanted == "--help" || wanted == "-h" || wanted == "--help-all")
    return print(help());
  if (hearth::Command* command = find_command(wanted))
    return run(*command, std::span(arguments).subspan(1));
  hearth::log_line(unknown_command(wanted));
  return kUsageError;
}
