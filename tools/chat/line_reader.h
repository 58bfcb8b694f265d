// Lines from a person: edited and remembered on a terminal, read plainly from a pipe. A line that
// ends in a backslash goes on in the next; one of just """ begins a text that ends at the next such
// line.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace hearth {

class LineReader {
 public:
  // `history`: where lines are kept between runs; empty: nowhere.
  explicit LineReader(std::filesystem::path history);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // True on a terminal.
  bool interactive() const { return interactive_; }

  enum class End { kText, kInterrupted, kClosed };
  struct Input {
    End end = End::kText;
    std::string text;
    bool quoted = false;  // between """, where a command is a text like any other
  };
  // `initial` is there to be edited, on a terminal.
  Input read(const std::string& prompt, const std::string& initial = {});

 private:
  std::optional<std::string> read_line(const std::string& prompt, const std::string& initial);

  bool interactive_;
  std::filesystem::path history_;
};

// $XDG_STATE_HOME/hearth/chat_history, else ~/.local/state/hearth/chat_history; empty without a
// home.
std::filesystem::path default_history_file();

}  // namespace hearth
