// hearth: one binary, one file a command (tools/commands/). Exit 0 is success, 2 a usage error, 1
// any other failure, each failure with one line on stderr.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include <unistd.h>

#include "runtime/log.h"
#include "tools/commands/check_numbers.h"
#include "tools/commands/command.h"
#include "tools/standard_streams.h"
#ifdef HEARTH_DASHBOARD
#include "ui/window/display.h"
#endif

#ifndef HEARTH_VERSION
#define HEARTH_VERSION "unknown"
#endif

namespace {

constexpr int kUsageError = 2;

// What `hearth` does when nothing is asked for: the dashboard where there is a display, a talk
// where there is a terminal, else a story, so that the first try always ends in something to see.
const char* default_command_name() {
#ifdef HEARTH_DASHBOARD
  if (hearth::display_answers()) return "dash";
#endif
  return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0 ? "chat" : "story";
}

// Libraries may throw what no command expects, as when memory runs out: that ends it like any
// error.
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

int run(hearth::Command& command) {
  const int code = exit_code(outcome_of(command));
  return code != 0 ? code : exit_code(hearth::finish_standard_output());
}

// CLI11 says some things in several lines; a user gets one.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

int main(int argc, char** argv) {
  hearth::open_standard_streams();
  CLI::App app{"Hearth runs language models on the GPU you already own.", "hearth"};
  app.set_version_flag("--version", "hearth " HEARTH_VERSION);
  app.require_subcommand(0, 1);

  for (hearth::Command* command : hearth::Command::all()) {
    command->declare(*app.add_subcommand(command->name(), command->about()));
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // for help, or for the version
    app.exit(asked);
    return exit_code(hearth::finish_standard_output());
  } catch (const CLI::ParseError& error) {
    hearth::log_line(first_line(error.what()) + " (see hearth --help)");
    return kUsageError;
  }

  std::string wanted;
  if (app.get_subcommands().empty()) {
    wanted = default_command_name();
  } else {
    const CLI::App& chosen = *app.get_subcommands().front();
    if (const int code = exit_code(hearth::check_numbers(chosen), kUsageError)) return code;
    wanted = chosen.get_name();
  }
  for (hearth::Command* command : hearth::Command::all())
    if (command->name() == wanted) return run(*command);
  return kUsageError;
}
