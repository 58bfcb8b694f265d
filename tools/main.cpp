// hearth: one program, one file per command (tools/commands/). It exits with 0 on success, with 2
// after a usage error and with 1 after any other failure; each failure is one line on stderr.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/weights/in_quotes.h"
#include "runtime/log.h"
#include "tools/commands/command.h"
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
  if (hearth::display_answers()) return "dash";
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

std::string help() {
  std::string page = "Hearth runs language models on the GPU you already own.\n\nCommands:\n";
  for (const hearth::Command* command : hearth::Command::all())
    page += fmt::format("  {:<12} {}\n", command->name(), command->about());
  return page;
}

}  // namespace

int main(int argc, char** argv) {
  hearth::open_standard_streams();
  const std::vector<std::string> arguments(argv + 1, argv + std::max(argc, 1));
  const std::string wanted = arguments.empty() ? default_command_name() : arguments[0];
  if (wanted == "--version") return print("hearth " HEARTH_VERSION "\n");
  if (wanted == "--help" || wanted == "-h" || wanted == "--help-all") return print(help());
  for (hearth::Command* command : hearth::Command::all())
    if (command->name() == wanted)
      return run(*command, std::span(arguments).subspan(arguments.empty() ? 0 : 1));
  hearth::log_line(fmt::format("no command {} (see hearth --help)", hearth::in_quotes(wanted)));
  return kUsageError;
}
