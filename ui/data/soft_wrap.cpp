#include "ui/data/soft_wrap.h"

#include <algorithm>

#include "ui/data/rich_lines.h"

namespace hearth {

void SoftWrap::set(std::string_view text, float width, const Advance& advance) {
  text_ = text;
  wrap(width, advance);
}

size_t SoftWrap::edit(std::string_view shown, size_t cursor, float width, const Advance& advance) {
  // What is the same at the beginning and at the end was not edited.
  const size_t common = std::min(shown.size(), shown_.size());
  size_t head = 0, tail = 0;
  // Text before the cursor may have been typed, so that the comparison ends there.
  const size_t most_head = std::min(common, cursor);
  while (head < most_head && shown[head] == shown_[head]) ++head;
  while (tail < common - head && shown[shown.size() - 1 - tail] == shown_[shown_.size() - 1 - tail])
    ++tail;
  const size_t old_end = shown_.size() - tail, new_end = shown.size() - tail;
  const auto is_added = [&](size_t place) { return std::ranges::binary_search(added_, place); };
  std::string text;
  size_t text_cursor = 0;
  for (size_t i = 0; i < shown.size(); ++i) {
    if (i == cursor) text_cursor = text.size();
    const bool before = i < head, after = i >= new_end;
    if ((before && is_added(i)) || (after && is_added(old_end + (i - new_end)))) continue;
    text += shown[i];
  }
  if (cursor >= shown.size()) text_cursor = text.size();
  const bool only_added_feed =
      head == new_end && old_end == head + 1 && is_added(head) && text == text_;
  if (only_added_feed && text_cursor > 0) {
    size_t from = text_cursor - 1;
    while (from > 0 && (static_cast<unsigned char>(text[from]) & 0xc0) == 0x80) --from;
    text.erase(from, text_cursor - from);
    text_cursor = from;
  }
  text_ = std::move(text);
  wrap(width, advance);
  return shown_place(text_cursor);
}

size_t SoftWrap::shown_place(size_t place) const {
  size_t result = place;
  for (const size_t added : added_) {
    if (added >= result) break;
    ++result;
  }
  return result;
}

void SoftWrap::wrap(float width, const Advance& advance) {
  width_ = width;
  RichLines lines;
  lines.layout(
      plain_text(text_), text_, width,
      {.advance = [&](char32_t character,
                      const TextStyle&) { return character == '\n' ? 0 : advance(character); },
       .line_height = [](const TextStyle&) { return 1.0f; }});
  shown_.clear();
  added_.clear();
  for (size_t i = 0; i < lines.lines().size(); ++i) {
    for (const RichPiece& piece : lines.lines()[i].pieces) shown_ += piece.text(text_);
    if (i + 1 == lines.lines().size() || (!shown_.empty() && shown_.back() == '\n')) continue;
    added_.push_back(shown_.size());
    shown_ += '\n';
  }
}

}  // namespace hearth
