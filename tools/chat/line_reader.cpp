#include "tools/chat/line_reader.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <system_error>

#include <unistd.h>

#include "tools/chat/interrupt.h"

#ifdef HEARTH_HAS_LIBEDIT
#include <editline/readline.h>
#endif

namespace hearth {
namespace {

#ifdef HEARTH_HAS_LIBEDIT
constexpr bool kEdits = true;
constexpr int kMostHistory = 1000;

// A global, because libedit's hook takes no argument.
std::string text_to_edit;

int insert_text() {
  rl_insert_text(text_to_edit.c_str());
  return 0;
}

void begin_editing(const std::filesystem::path& history) {
  rl_readline_name = "hearth";
  using_history();
  stifle_history(kMostHistory);
  if (!history.empty()) read_history(history.c_str());
}

void end_editing(const std::filesystem::path& history) {
  if (history.empty()) return;
  std::error_code ignored;  // a history that cannot be saved is not worth an error
  std::filesystem::create_directories(history.parent_path(), ignored);
  ::write_history(history.c_str());
}

std::optional<std::string> edit_line(const std::string& prompt, const std::string& initial) {
  text_to_edit = initial;
  rl_startup_hook = initial.empty() ? nullptr : insert_text;
  char* const line = readline(prompt.c_str());
  if (line == nullptr) return std::nullopt;
  std::string text(line);
  std::free(line);
  if (!text.empty()) add_history(text.c_str());
  return text;
}
#else
constexpr bool kEdits = false;
void begin_editing(const std::filesystem::path&) {}
void end_editing(const std::filesystem::path&) {}
std::optional<std::string> edit_line(const std::string&, const std::string&) { return {}; }
#endif

constexpr const char* kQuote = "\"\"\"";

}  // namespace

LineReader::LineReader(std::filesystem::path history)
    : interactive_(isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0),
      history_(std::move(history)) {
  if (interactive_) begin_editing(history_);
}

LineReader::~LineReader() {
  if (interactive_) end_editing(history_);
}

std::optional<std::string> LineReader::read_line(const std::string& prompt,
                                                 const std::string& initial) {
  if (interactive_ && kEdits) return edit_line(prompt, initial);
  if (interactive_) {
    std::cout << prompt << std::flush;
  }
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  return line;
}

LineReader::Input LineReader::read(const std::string& prompt, const std::string& initial) {
  Input input;
  std::string next_prompt = prompt, next_initial = initial;
  while (true) {
    const std::optional<std::string> line = read_line(next_prompt, next_initial);
    if (take_interrupt()) {
      // The text typed so far is dropped, as in a shell.
      std::clearerr(stdin);
      std::cin.clear();
      return {.end = End::kInterrupted};
    }
    if (!line) {
      if (input.text.empty()) input.end = End::kClosed;
      return input;
    }
    next_prompt = "... ";
    next_initial.clear();
    if (*line == kQuote) {
      if (input.quoted) return input;
      input.quoted = true;
      continue;
    }
    input.text += *line;
    if (input.quoted) {
      input.text += '\n';
    } else if (!input.text.empty() && input.text.back() == '\\') {
      input.text.back() = '\n';
    } else {
      return input;
    }
  }
}

std::filesystem::path default_history_file() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0')
    return std::filesystem::path(state) / "hearth" / "chat_history";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::filesystem::path(home) / ".local" / "state" / "hearth" / "chat_history";
  return {};
}

}  // namespace hearth
