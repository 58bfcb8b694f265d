// Breaks a text into lines of a width, and goes on where it was when more text comes. Lines break
// after blanks, and within a word only if it is alone too long. Knows nothing of fonts.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

namespace hearth {

// One character of UTF-8 from `at` on, which moves behind it; U+FFFD for a byte that is none.
char32_t take_character(std::string_view text, size_t& at);

class ChatLines {
 public:
  using Advance = std::function<float(char32_t)>;  // how wide a character is

  // `text` is what the last call had and perhaps more; otherwise clear() first. Another width
  // breaks all of it anew.
  void layout(std::string_view text, float width, const Advance& advance);
  void clear() { *this = ChatLines(); }

  struct Line {
    size_t begin = 0, end = 0;  // bytes of the text; the line feed that ends it comes after
    float width = 0;            // without blanks at its end
  };
  const std::vector<Line>& lines() const { return lines_; }
  float width() const { return widest_; }

 private:
  void break_from(std::string_view text, size_t begin, const Advance& advance);

  std::vector<Line> lines_;
  size_t size_ = 0;  // bytes that are laid out
  float limit_ = 0, widest_ = 0;
};

}  // namespace hearth
