#include "ui/data/chat_lines.h"

#include <algorithm>

namespace hearth {

char32_t take_character(std::string_view text, size_t& at) {
  constexpr char32_t kBroken = 0xfffd;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(at++);
  if (lead < 0x80) return lead;
  const size_t more = lead >= 0xc2 && lead < 0xe0   ? 1
                      : lead >= 0xe0 && lead < 0xf0 ? 2
                      : lead >= 0xf0 && lead < 0xf5 ? 3
                                                    : 0;
  if (more == 0 || at + more > text.size()) return kBroken;
  char32_t character = lead & (0x3fu >> more);
  for (size_t i = 0; i < more; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return kBroken;
    character = character << 6 | (byte(at + i) & 0x3f);
  }
  at += more;
  return character;
}

void ChatLines::layout(std::string_view text, float width, const Advance& advance) {
  if (width == limit_ && text.size() == size_ && !lines_.empty()) return;
  size_t begin = 0;
  if (width == limit_ && text.size() > size_ && !lines_.empty()) {
    begin = lines_.back().begin;
    lines_.pop_back();
  } else {
    lines_.clear();
    widest_ = 0;
  }
  limit_ = width;
  size_ = text.size();
  break_from(text, begin, advance);
}

void ChatLines::break_from(std::string_view text, size_t begin, const Advance& advance) {
  const auto end_line = [&](size_t end, float width) {
    lines_.push_back({.begin = begin, .end = end, .width = width});
    widest_ = std::max(widest_, width);
  };
  float x = 0, inked = 0;             // the position so far, and without trailing blanks
  size_t word = begin;                // start of the current word
  float word_x = 0, before_word = 0;  // its position, and `inked` before it
  for (size_t at = begin; at < text.size();) {
    const size_t here = at;
    const char32_t character = take_character(text, at);
    if (character == '\n') {
      end_line(here, inked);
      begin = word = at;
      x = inked = word_x = before_word = 0;
      continue;
    }
    const float character_width = advance(character);
    if (character == ' ' || character == '\t') {
      // Trailing blanks may extend past the edge.
      x += character_width;
      word = at;
      word_x = x;
      before_word = inked;
      continue;
    }
    while (x + character_width > limit_ && here > begin) {
      if (word > begin) {
        end_line(word, before_word);
        begin = word;
        x -= word_x;
        inked = x;
      } else {
        end_line(here, inked);
        begin = word = here;
        x = 0;
      }
      word_x = before_word = 0;
    }
    x += character_width;
    inked = x;
  }
  end_line(text.size(), inked);
}

}  // namespace hearth
