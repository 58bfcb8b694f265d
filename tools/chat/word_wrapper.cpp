#include "tools/chat/word_wrapper.h"

#include <utility>

#include <fmt/format.h>

#include "engine/text/utf8.h"
#include "tools/chat/character_width.h"

namespace hearth {
namespace {

constexpr uint32_t kTabStop = 8;

char32_t decode_character(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0);
  char32_t code = byte(0) & (0xffu >> (character.size() + 1));
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3fu);
  return code;
}

}  // namespace

WordWrapper::WordWrapper(std::function<uint32_t()> columns,
                         std::function<void(std::string_view)> write)
    : columns_of_terminal_(std::move(columns)), write_(std::move(write)) {}

void WordWrapper::add(std::string_view text) {
  columns_ = columns_of_terminal_();
  if (columns_ == 0) return write_(text);
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    const std::string_view bytes = text.substr(0, step.bytes);
    text.remove_prefix(step.bytes);
    if (step.kind == Utf8Step::Kind::kCharacter)
      add_character(bytes, decode_character(bytes));
    else
      add_character(kReplacementCharacter, 0xfffd);
  }
}

void WordWrapper::add_character(std::string_view bytes, char32_t character) {
  if (character == '\n') {
    end_word();
    return break_line();
  }
  if (character == ' ' || character == '\t') {
    end_word();
    return add_space(bytes.front());
  }
  const uint32_t width = character_width(character);
  const bool fills_line = word_width_ + width > columns_;  // longer than any line
  if (!word_.empty() && (fills_line || may_break_between(last_character_, character))) end_word();
  word_ += bytes;
  word_width_ += width;
  last_character_ = character;
  if (shown_bytes_ > 0 && start_ > 0 && !word_fits()) move_shown();
}

// Counted from the left edge: after a character in the last column, terminals disagree about where
// the cursor is. REQUIRES: start_ > 0, because 0 would move by 1.
void WordWrapper::move_shown() {
  shown_bytes_ = 0;
  if (first_on_line_) {  // only its indent is in the way
    write_("\r\033[K");
    column_ = start_ = 0;
  } else {
    write_(fmt::format("\r\033[{}C\033[K", start_));
    break_line();
  }
}

void WordWrapper::add_space(char space) {
  start_ += space == '\t' ? kTabStop - start_ % kTabStop : 1;
  spaces_ += space;
}

void WordWrapper::show_held() {
  if (columns_ == 0 || shown_bytes_ == word_.size()) return;
  if (shown_bytes_ == 0) {
    if (column_ > 0 && !word_fits()) break_line();
    if (!word_fits()) start_ = 0, spaces_.clear();  // an indent that leaves too little room
    write_(std::exchange(spaces_, {}));
  }
  write_(std::string_view(word_).substr(shown_bytes_));
  shown_bytes_ = word_.size();
  column_ = start_ + word_width_;
}

void WordWrapper::end_word() {
  show_held();
  if (!word_.empty()) first_on_line_ = false;
  word_.clear();
  shown_bytes_ = word_width_ = 0;
  if (spaces_.empty()) start_ = column_;
}

// Spaces at the end of a line are left out.
void WordWrapper::break_line() {
  write_("\n");
  spaces_.clear();
  column_ = start_ = 0;
  first_on_line_ = true;
}

void WordWrapper::end() {
  if (columns_ == 0) return write_("\n");
  end_word();
  break_line();
}

std::string wrap_words(std::string_view text, uint32_t columns) {
  std::string wrapped;
  WordWrapper wrapper([=] { return columns; }, [&](std::string_view piece) { wrapped += piece; });
  wrapper.add(text);
  wrapper.end();
  wrapped.pop_back();  // the line's end
  return wrapped;
}

}  // namespace hearth
