// Reads the user's input: with line editing and a history on a terminal, plain lines from a pipe. A
// line that ends in a backslash continues on the next one. A line of just """ starts a text of
// several lines, which the next such line ends.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace hearth {

class LineReader {
 public:
  // `history` is the file that keeps lines between runs; empty: none.
  explicit LineReader(std::filesystem::path history);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Whether input and output are both a terminal.
  bool interactive() const { return interactive_; }

  enum class End { kText, kInterrupted, kClosed };
  struct Input {
    End end = End::kText;
    std::string text;
    bool quoted = false;  // came between """ lines, where a command is ordinary text
  };
  // On a terminal, the user edits `initial`.
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
