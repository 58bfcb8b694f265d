// Wrapped text in bubbles, and the places of an answer's tokens in it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include <imgui.h>

#include "ui/data/chat.h"
#include "ui/data/chat_lines.h"
#include "ui/theme.h"

namespace hearth {

inline constexpr float kBubblePadding = 9;  // inside a bubble, at scale 1
inline constexpr float kBubbleRounding = 8;

struct TextBubble {
  ImVec2 min, text, max;
  float line_height = 0;

  float height() const { return max.y - min.y; }
};

// Wraps with the current font; otherwise as ChatLines::layout().
void wrap_text(ChatLines& lines, std::string_view text, float width);
// Draws the background of a bubble at the cursor, `left` pixels from it, without moving the cursor.
TextBubble draw_bubble(const Theme& theme, size_t lines, float left, float width, ImU32 color);
// Draws the lines that are visible. `first_row`: where in the bubble they begin.
void draw_lines(const ChatLines& lines, std::string_view text, const TextBubble& bubble,
                ImU32 color, size_t first_row = 0);

// A stretch of an answer that is drawn in one bubble.
struct TokenRun {
  const ChatReply& reply;
  std::span<const size_t> token_ends;  // of all tokens: byte offsets in the answer's text
  size_t begin = 0, end = 0;           // bytes of the answer's text
  const ChatLines& lines;              // of this stretch
  const TextBubble& bubble;

  std::string_view text() const { return std::string_view(reply.text).substr(begin, end - begin); }
};

struct TokenPlace {
  size_t token = 0;
  bool is_blank = false;  // only the blank of a word that is on the next line
  ImVec2 min, max;
};

std::optional<TokenPlace> token_at(const Theme& theme, const TokenRun& run, ImVec2 place);
// The token that the stretch begins with.
size_t first_token(const TokenRun& run);
// Draws a box around every token if `all`, and marks the one at which the answer was branched.
void shade_tokens(const Theme& theme, const TokenRun& run, bool all);

}  // namespace hearth
