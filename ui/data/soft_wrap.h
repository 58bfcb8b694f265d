// Word wrap for a text box that only knows hard line feeds: the box shows a copy of the text with
// line feeds where lines are too long, and edits of the copy are carried over to the text. Used by
// one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

class SoftWrap {
 public:
  using Advance = std::function<float(char32_t)>;  // the width of a character

  // The text without added line feeds, and as the box shows it.
  const std::string& text() const { return text_; }
  const std::string& shown() const { return shown_; }
  float width() const { return width_; }

  // Replaces the text and breaks its lines.
  void set(std::string_view text, float width, const Advance& advance);
  // Takes over what the box shows after an edit, with the cursor at this byte, and breaks lines
  // again. Returns the cursor's new place. Deleting an added line feed deletes the character before
  // it instead.
  size_t edit(std::string_view shown, size_t cursor, float width, const Advance& advance);

 private:
  void wrap(float width, const Advance& advance);
  size_t shown_place(size_t place) const;  // of a byte of the text

  std::string text_, shown_;
  float width_ = 0;
  std::vector<size_t> added_;  // places of added line feeds in shown_, ascending
};

}  // namespace hearth
