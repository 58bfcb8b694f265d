#include "ui/panels/chat_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ui/panels/chat_widgets.h"
#include "ui/panels/token_alternatives.h"

namespace hearth {
namespace {

constexpr float kLineFeedWidth = 6;  // so that the mouse can point at a line feed

// The first row of text from `top` on that is not above the clipping rectangle.
size_t first_visible_row(float top, float line_height) {
  const float clipped = ImGui::GetWindowDrawList()->GetClipRectMin().y - top;
  return static_cast<size_t>(std::max(0.0f, std::floor(clipped / line_height)));
}

// Calls visit(TokenPlace) for every token of a line.
template <class Visit>
void visit_line(const Theme& theme, const TokenRun& run, size_t line, Visit visit) {
  const auto& lines = run.lines.lines();
  const std::string_view text = run.reply.text;
  const size_t begin = run.begin + lines[line].begin;
  // The line feed belongs to the line.
  const size_t end = line + 1 < lines.size() ? run.begin + lines[line + 1].begin : run.end;
  float x = run.bubble.text.x;
  const float y = run.bubble.text.y + run.bubble.line_height * static_cast<float>(line);
  const auto first = std::ranges::upper_bound(run.token_ends, begin);
  for (auto token = static_cast<size_t>(first - run.token_ends.begin());
       token < run.token_ends.size(); ++token) {
    const size_t from = std::max(begin, token == 0 ? 0 : run.token_ends[token - 1]);
    const size_t to = std::min(end, run.token_ends[token]);
    if (from >= end) break;
    const size_t ink = std::min(to, std::max(from, run.begin + lines[line].end));
    float width = ImGui::CalcTextSize(text.data() + from, text.data() + ink).x;
    if (to > ink) width += theme.px(kLineFeedWidth);
    const bool is_blank = run.token_ends[token] > to && text.find_first_not_of(' ', from) >= to;
    if (from < to)
      visit(TokenPlace{.token = token,
                       .is_blank = is_blank,
                       .min = {x, y},
                       .max = {x + width, y + ImGui::GetTextLineHeight()}});
    x += width;
  }
}

}  // namespace

void wrap_text(ChatLines& lines, std::string_view text, float width) {
  ImFontBaked* const font = ImGui::GetFontBaked();
  const float scale = ImGui::GetFontSize() / font->Size;
  lines.layout(text, width, [&](char32_t character) {
    return scale * font->GetCharAdvance(static_cast<ImWchar>(character));
  });
}

TextBubble draw_bubble(const Theme& theme, size_t lines, float left, float width, ImU32 color) {
  const float padding = theme.px(kBubblePadding), line = ImGui::GetTextLineHeightWithSpacing();
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  TextBubble bubble;
  bubble.line_height = line;
  bubble.min = {corner.x + left, corner.y};
  bubble.text = {bubble.min.x + padding, bubble.min.y + padding * 0.7f};
  bubble.max = {bubble.min.x + width, bubble.min.y + 1.4f * padding +
                                          line * static_cast<float>(lines) -
                                          ImGui::GetStyle().ItemSpacing.y};
  ImGui::GetWindowDrawList()->AddRectFilled(bubble.min, bubble.max, color,
                                            theme.px(kBubbleRounding));
  return bubble;
}

void draw_lines(const ChatLines& lines, std::string_view text, const TextBubble& bubble,
                ImU32 color, size_t first_row) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float top = bubble.text.y + bubble.line_height * static_cast<float>(first_row);
  for (size_t i = first_visible_row(top, bubble.line_height); i < lines.lines().size(); ++i) {
    const float y = top + bubble.line_height * static_cast<float>(i);
    if (y > draw.GetClipRectMax().y) break;
    const ChatLines::Line& line = lines.lines()[i];
    if (line.end > line.begin)
      draw.AddText({bubble.text.x, y}, color, text.data() + line.begin, text.data() + line.end);
  }
}

std::optional<TokenPlace> token_at(const Theme& theme, const TokenRun& run, ImVec2 place) {
  const float row = (place.y - run.bubble.text.y) / run.bubble.line_height;
  if (row < 0 || row >= static_cast<float>(run.lines.lines().size())) return std::nullopt;
  std::optional<TokenPlace> found;
  visit_line(theme, run, static_cast<size_t>(row), [&](const TokenPlace& token) {
    if (place.x >= token.min.x && place.x < token.max.x) found = token;
  });
  return found;
}

size_t first_token(const TokenRun& run) {
  const auto place = std::ranges::upper_bound(run.token_ends, run.begin);
  return std::min(static_cast<size_t>(place - run.token_ends.begin()),
                  run.reply.tokens.empty() ? 0 : run.reply.tokens.size() - 1);
}

void shade_tokens(const Theme& theme, const TokenRun& run, bool all) {
  const ChatReply& reply = run.reply;
  if (!all && reply.kept_tokens == 0 && !is_logging()) return;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const TextBubble& bubble = run.bubble;
  for (size_t line = first_visible_row(bubble.text.y, bubble.line_height);
       line < run.lines.lines().size(); ++line) {
    if (bubble.text.y + bubble.line_height * static_cast<float>(line) > draw.GetClipRectMax().y)
      break;
    visit_line(theme, run, line, [&](const TokenPlace& place) {
      const ChatToken& token = reply.tokens[place.token];
      const ImVec2 to{place.max.x - theme.px(1), place.max.y};
      const float rounding = theme.px(2);
      if (place.is_blank) return;
      if (all) draw.AddRectFilled(place.min, to, token_color(theme, token.probability), rounding);
      // Marks the token at which the branch was made.
      if (reply.kept_tokens > 0 && place.token + 1 == reply.kept_tokens)
        draw.AddRect(place.min, to, style_color(ImGuiCol_CheckMark), rounding, 0, theme.px(1));
      if (is_logging()) log_place(fmt::format("token {}", place.token), place.min, place.max);
    });
  }
}

}  // namespace hearth
