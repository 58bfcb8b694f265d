// hearth: one binary, one file a command (tools/commands/). Exit 0 is success, 2 a usage error, 1
// any other failure, each failure with one line on stderr.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include <unistd.h>

#include "runtime/log.h"
#include "tools/commands/command.h"
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
  if (hearth::display_is_there()) return "dash";
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

int run(hearth::Command& command) {
  const hearth::Status status = outcome_of(command);
  if (status.ok()) return 0;
  hearth::log_line(status.error().message);
  return 1;
}

// CLI11 says some things in several lines; a user gets one.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Hearth runs language models on the GPU you already own.", "hearth"};
  app.set_version_flag("--version", "hearth " HEARTH_VERSION);
  app.require_subcommand(0, 1);

  for (hearth::Command* command : hearth::Command::all()) {
    command->declare(*app.add_subcommand(command->name(), command->about()));
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    hearth::log_line(first_line(error.what()) + " (see hearth --help)");
    return kUsageError;
  }

  const bool nothing_asked = app.get_subcommands().empty();
  for (hearth::Command* command : hearth::Command::all())
    if (nothing_asked ? command->name() == default_command_name()
                      : app.got_subcommand(command->name()))
      return run(*command);
  return kUsageError;
}
