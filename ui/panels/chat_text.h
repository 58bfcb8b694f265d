// Styled text in bubbles: drawing it, selecting it with the mouse, and finding an answer's tokens
// in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <imgui.h>

#include "ui/data/chat.h"
#include "ui/data/rich_lines.h"
#include "ui/theme.h"

namespace hearth {

inline constexpr float kBubblePadding = 9;  // inside a bubble, at scale 1
inline constexpr float kBubbleRounding = 8;

// The sizes of text in the current font.
RichMetrics chat_metrics(const Theme& theme);
// Wraps text to a width, as Markdown or as it is.
void wrap_text(const Theme& theme, RichLines& lines, std::string_view text, bool markdown,
               float width);

struct TextBubble {
  ImVec2 min, text, max;

  float height() const { return max.y - min.y; }
};
// Draws the background of a bubble at the cursor, `left` pixels from it, without moving the cursor.
// `text_height` is the height of what it holds.
TextBubble draw_bubble(const Theme& theme, float text_height, float left, float width, ImU32 color);

// Text in its place on the screen.
struct PlacedText {
  const RichLines& lines;
  std::string_view source;
  ImVec2 at;
  const RichMetrics& metrics;
  float width = 0;  // of blocks of code; 0: as wide as the text

  // The byte under a position of the screen; see RichLines::byte_at().
  std::optional<size_t> byte_at(ImVec2 place, bool nearest = false) const {
    return lines.byte_at(place.x - at.x, place.y - at.y, source, metrics, nearest);
  }
};
// What is behind the text that is visible: the boxes of code and the bars of quotations. Marks come
// between this and the text.
void draw_text_back(const Theme& theme, const PlacedText& text);
// Draws the lines that are visible.
void draw_text(const Theme& theme, const PlacedText& text, ImU32 color);
// Draws a copy button in each code block that is visible. `id` is unique in the window.
void draw_code_buttons(const Theme& theme, const PlacedText& text, float right,
                       const std::string& id);
// Fills the background of a range of bytes.
void mark_text(const PlacedText& text, size_t begin, size_t end, ImU32 color);
// Marks every occurrence of a search, in any case, and returns how many there are.
size_t mark_search(const Theme& theme, const PlacedText& text, std::string_view search);

// The text that the user has selected, in one bubble at a time.
class TextSelection {
 public:
  // Call after the bubble's item was drawn. Returns the byte that was clicked, if the mouse was
  // not dragged. `key` identifies the bubble.
  std::optional<size_t> update(const PlacedText& text, const std::string& key);
  // Marks the selected part. Ctrl+C copies it.
  void draw(const PlacedText& text, const std::string& key) const;
  // What is selected; empty if nothing is.
  const std::string& selected() const { return selected_; }
  void clear() { *this = TextSelection(); }

 private:
  std::string key_;
  size_t anchor_ = 0, head_ = 0;  // bytes
  bool dragged_ = false;
  std::string selected_;
};

// A stretch of an answer that is drawn in one bubble.
struct TokenRun {
  const ChatReply& reply;
  std::span<const size_t> token_ends;  // of all tokens: byte offsets in the answer's text
  size_t begin = 0;                    // of the stretch, in the answer's text
  PlacedText text;

  size_t end() const { return begin + text.source.size(); }
  // The token with this byte of the stretch.
  size_t token_with(size_t byte) const;
};

// Draws a box around every token if `all`, and marks the one at which the answer was branched.
void shade_tokens(const Theme& theme, const TokenRun& run, bool all);

}  // namespace hearth
