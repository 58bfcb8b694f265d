// Wraps text into lines of a given width, incrementally as text is appended. Lines break after
// blanks, and inside a word only if the word alone is too long. Independent of fonts.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

namespace hearth {

// Decodes the UTF-8 character at `at` and advances `at` past it. Returns U+FFFD for an invalid
// byte.
char32_t take_character(std::string_view text, size_t& at);

class ChatLines {
 public:
  using Advance = std::function<float(char32_t)>;  // the width of a character

  // REQUIRES: `text` starts with the text of the previous call; otherwise clear() first. A changed
  // width wraps everything again.
  void layout(std::string_view text, float width, const Advance& advance);
  void clear() { *this = ChatLines(); }

  struct Line {
    size_t begin = 0, end = 0;  // byte range in the text, without the final line feed
    float width = 0;            // without trailing blanks
  };
  const std::vector<Line>& lines() const { return lines_; }
  float width() const { return widest_; }

 private:
  void break_from(std::string_view text, size_t begin, const Advance& advance);

  std::vector<Line> lines_;
  size_t size_ = 0;  // bytes laid out so far
  float limit_ = 0, widest_ = 0;
};

}  // namespace hearth
