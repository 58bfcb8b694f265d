#include "ui/panels/chat_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ui/fonts.h"
#include "ui/panels/chat_widgets.h"
#include "ui/panels/token_alternatives.h"

namespace hearth {
namespace {

constexpr float kLineFeedWidth = 6;  // so that the mouse can point at a line feed
constexpr float kSlant = 0.2f;       // of italic text, which has no font of its own

float ascent_of(const TextStyle& style) {
  const float size = font_size_of(style);
  ImFontBaked* const baked = font_of(style)->GetFontBaked(size);
  return baked->Ascent * size / baked->Size;
}

void draw_piece(const Theme& theme, const RichPiece& piece, std::string_view source, ImVec2 at,
                ImU32 color) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const std::string_view text = piece.text(source);
  const float size = font_size_of(piece.style);
  const int before = draw.VtxBuffer.Size;
  draw.AddText(font_of(piece.style), size, at, color, text.data(), text.data() + text.size());
  if (piece.style.italic)
    for (int i = before; i < draw.VtxBuffer.Size; ++i)
      draw.VtxBuffer[i].pos.x += kSlant * (at.y + 0.8f * size - draw.VtxBuffer[i].pos.y);
  const auto stroke = [&](float height) {
    const float y = std::round(at.y + height);
    draw.AddLine({at.x, y}, {at.x + piece.width, y}, color, theme.px(1));
  };
  if (piece.style.link) stroke(size * 0.95f);
  if (piece.style.struck) stroke(size * 0.55f);
}

// What the window shows of a text, from the text's top.
struct VisiblePart {
  float top = 0, bottom = 0;
};
VisiblePart visible_part(const PlacedText& text) {
  const ImDrawList& draw = *ImGui::GetWindowDrawList();
  return {draw.GetClipRectMin().y - text.at.y, draw.GetClipRectMax().y - text.at.y};
}

// Calls visit(line, piece, place on the screen). All pieces of a line have the same baseline.
template <class Visit>
void visit_visible_pieces(const PlacedText& text, Visit visit) {
  const VisiblePart visible = visible_part(text);
  for (size_t i = text.lines.line_at(visible.top); i < text.lines.lines().size(); ++i) {
    const RichLine& line = text.lines.lines()[i];
    if (line.y > visible.bottom) break;
    float ascent = ascent_of(TextStyle{});
    for (const RichPiece& piece : line.pieces) ascent = std::max(ascent, ascent_of(piece.style));
    for (const RichPiece& piece : line.pieces)
      visit(line, piece,
            ImVec2(text.at.x + piece.x,
                   std::floor(text.at.y + line.y + ascent - ascent_of(piece.style))));
  }
}

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

}  // namespace

RichMetrics chat_metrics(const Theme& theme) {
  const float spacing = std::round(ImGui::GetStyle().ItemSpacing.y * 0.6f);
  return {
      .advance =
          [feed = theme.px(kLineFeedWidth)](char32_t character, const TextStyle& style) {
            return character == '\n' ? feed : advance_of(character, style);
          },
      .line_height = [spacing](const TextStyle& style) { return font_size_of(style) + spacing; },
      .indent = theme.px(20),
      .gap = theme.px(7),
      .padding = theme.px(8),
      .code_heading = std::round(0.9f * ImGui::GetFontSize())};
}

void wrap_text(const Theme& theme, RichLines& lines, std::string_view text, bool markdown,
               float width) {
  lines.update(text, markdown, std::max(width, 1.0f), ImGui::GetFontSize(), chat_metrics(theme));
}

TextBubble draw_bubble(const Theme& theme, float text_height, float left, float width,
                       ImU32 color) {
  const float padding = theme.px(kBubblePadding);
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  TextBubble bubble;
  bubble.min = {corner.x + left, corner.y};
  // Whole pixels, where ImGui draws text.
  bubble.text = {std::floor(bubble.min.x + padding), std::floor(bubble.min.y + padding * 0.7f)};
  bubble.max = {bubble.min.x + width, bubble.min.y + 1.4f * padding + text_height};
  ImGui::GetWindowDrawList()->AddRectFilled(bubble.min, bubble.max, color,
                                            theme.px(kBubbleRounding));
  return bubble;
}

void draw_text_back(const Theme& theme, const PlacedText& text) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const VisiblePart visible = visible_part(text);
  const auto& blocks = text.lines.blocks();
  const ImU32 back = style_color(ImGuiCol_WindowBg, 0.8f);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const RichBlock& place = text.lines.places()[i];
    if (place.y > visible.bottom || place.y + place.height < visible.top) continue;
    const ImVec2 at(text.at.x + place.x, text.at.y + place.y);
    const float right =
        text.at.x + (text.width > 0 ? text.width : text.lines.width() + text.metrics.padding);
    if (blocks[i].kind == MarkdownBlock::Kind::kCode)
      draw.AddRectFilled(at, {right, at.y + place.height}, back, theme.px(4));
    if (blocks[i].kind == MarkdownBlock::Kind::kRule)
      draw.AddLine({at.x, at.y + place.height / 2}, {right, at.y + place.height / 2},
                   theme.faint_color(), theme.px(1));
    for (int quote = 0; quote < blocks[i].quotes; ++quote) {
      const float x = text.at.x + text.metrics.indent * (static_cast<float>(quote) + 0.3f);
      draw.AddRectFilled({x, at.y}, {x + theme.px(2), at.y + place.height}, theme.faint_color());
    }
  }
  visit_visible_pieces(text, [&](const RichLine& line, const RichPiece& piece, ImVec2 at) {
    if (!piece.style.mono || blocks[line.block].kind == MarkdownBlock::Kind::kCode) return;
    draw.AddRectFilled({at.x - theme.px(2), at.y - theme.px(1)},
                       {at.x + piece.width + theme.px(2), at.y + font_size_of(piece.style)}, back,
                       theme.px(3));
  });
}

void draw_text(const Theme& theme, const PlacedText& text, ImU32 color) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const VisiblePart visible = visible_part(text);
  const auto& blocks = text.lines.blocks();
  for (size_t i = 0; i < blocks.size(); ++i) {
    const RichBlock& place = text.lines.places()[i];
    const std::string& marker = blocks[i].marker;
    if (marker.empty() || place.y > visible.bottom || place.y + place.height < visible.top)
      continue;
    const float width = ImGui::CalcTextSize(marker.c_str()).x;
    draw.AddText({std::floor(text.at.x + place.x - width - theme.px(5)), text.at.y + place.y},
                 with_opacity(color, 0.7f), marker.c_str());
  }
  visit_visible_pieces(text, [&](const RichLine&, const RichPiece& piece, ImVec2 at) {
    draw_piece(theme, piece, text.source, at,
               piece.style.link ? style_color(ImGuiCol_TextLink) : color);
  });
}

void draw_code_buttons(const Theme& theme, const PlacedText& text, float right,
                       const std::string& id) {
  const ImVec2 cursor = ImGui::GetCursorScreenPos();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto& blocks = text.lines.blocks();
  int number = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].kind != MarkdownBlock::Kind::kCode) continue;
    ++number;
    const RichBlock& place = text.lines.places()[i];
    const float y = text.at.y + place.y;
    if (y > draw.GetClipRectMax().y || y + place.height < draw.GetClipRectMin().y) continue;
    const float width = ImGui::CalcTextSize("Copy code").x + 2 * ImGui::GetStyle().FramePadding.x;
    ImGui::SetCursorScreenPos({right - width - theme.px(4), y + theme.px(3)});
    if (ImGui::SmallButton(fmt::format("Copy code##{}.{}", id, number).c_str()))
      ImGui::SetClipboardText(code_text(blocks[i], text.source).c_str());
    const ImVec2 heading{text.at.x + place.x + text.metrics.padding, y + theme.px(3)};
    draw.PushClipRect(heading, {right - width - theme.px(8), y + place.height}, true);
    draw.AddText(heading, with_opacity(theme.text_color(), 0.6f), blocks[i].language.c_str());
    draw.PopClipRect();
  }
  if (number == 0) return;
  ImGui::SetCursorScreenPos(cursor);
  // An item has to follow a moved cursor.
  ImGui::Dummy({0, 0});
}

void mark_text(const PlacedText& text, size_t begin, size_t end, ImU32 color) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  text.lines.boxes(begin, end, text.source, text.metrics, [&](const RichBox& box) {
    draw.AddRectFilled({text.at.x + box.left, text.at.y + box.top},
                       {text.at.x + box.right, text.at.y + box.bottom}, color);
  });
}

size_t mark_search(const Theme& theme, const PlacedText& text, std::string_view search) {
  if (search.empty()) return 0;
  size_t found = 0;
  const auto same = [](char a, char b) { return lower(a) == lower(b); };
  for (auto at = text.source.begin();; ++at) {
    at = std::search(at, text.source.end(), search.begin(), search.end(), same);
    if (at == text.source.end()) return found;
    const auto begin = static_cast<size_t>(at - text.source.begin());
    mark_text(text, begin, begin + search.size(),
              with_opacity(theme.phase_color(PhaseColor::kSharedPrefix), 0.4f));
    ++found;
  }
}

std::optional<size_t> TextSelection::update(const PlacedText& text, const std::string& key) {
  const ImVec2 mouse = ImGui::GetMousePos();
  if (ImGui::IsItemActivated() && ImGui::IsMouseDown(ImGuiMouseButton_Left)) {
    key_ = key;
    anchor_ = head_ = text.byte_at(mouse, true).value_or(0);
    dragged_ = false;
    selected_.clear();
  }
  if (key_ != key) return std::nullopt;
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
    dragged_ = true;
    head_ = text.byte_at(mouse, true).value_or(head_);
    const size_t size = text.source.size();
    const size_t begin = std::min({anchor_, head_, size}),
                 end = std::min(std::max(anchor_, head_), size);
    selected_ = text.source.substr(begin, end - begin);
  }
  if (!selected_.empty() && !ImGui::GetIO().WantTextInput &&
      ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_C))
    ImGui::SetClipboardText(selected_.c_str());
  if (ImGui::IsItemDeactivated() && !dragged_ && ImGui::IsItemHovered()) return text.byte_at(mouse);
  return std::nullopt;
}

void TextSelection::draw(const PlacedText& text, const std::string& key) const {
  if (key_ != key || selected_.empty()) return;
  const size_t begin = std::min(anchor_, head_);
  mark_text(text, begin, begin + selected_.size(), style_color(ImGuiCol_TextSelectedBg));
}

size_t TokenRun::token_with(size_t byte) const {
  const auto place = std::ranges::upper_bound(token_ends, begin + byte);
  return std::min(static_cast<size_t>(place - token_ends.begin()),
                  reply.tokens.empty() ? 0 : reply.tokens.size() - 1);
}

void shade_tokens(const Theme& theme, const TokenRun& run, bool all) {
  const ChatReply& reply = run.reply;
  if (!all && reply.kept_tokens == 0 && !is_logging()) return;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto& lines = run.text.lines.lines();
  const float top = draw.GetClipRectMin().y - run.text.at.y;
  const size_t first_line = run.text.lines.line_at(top);
  if (first_line >= lines.size() || run.token_ends.empty()) return;
  const size_t first_byte = first_line == 0 ? 0 : lines[first_line - 1].end;
  bool below = false;
  for (size_t token = run.token_with(first_byte); token < run.token_ends.size() && !below;
       ++token) {
    const size_t from = token == 0 ? 0 : run.token_ends[token - 1];
    if (from >= run.end()) break;
    const size_t to = std::min(run.token_ends[token], run.end());
    if (to <= run.begin) continue;
    const size_t begin = std::max(from, run.begin) - run.begin, end = to - run.begin;
    run.text.lines.boxes(begin, end, run.text.source, run.text.metrics, [&](const RichBox& box) {
      // The blank of a word that is on the next line is not marked.
      if (box.blank && run.text.source.substr(begin, end - begin).find_first_not_of(' ') !=
                           std::string_view::npos)
        return;
      const ImVec2 min(run.text.at.x + box.left, run.text.at.y + box.top);
      const ImVec2 max(run.text.at.x + box.right, run.text.at.y + box.bottom);
      below = min.y > draw.GetClipRectMax().y;
      const ImVec2 inner(max.x - theme.px(1), max.y - theme.px(1));
      const float rounding = theme.px(2);
      if (all)
        draw.AddRectFilled(min, inner, token_color(theme, reply.tokens[token].probability),
                           rounding);
      // Marks the token at which the branch was made.
      if (reply.kept_tokens > 0 && token + 1 == reply.kept_tokens)
        draw.AddRect(min, inner, style_color(ImGuiCol_CheckMark), rounding, 0, theme.px(1));
      if (is_logging()) log_place(fmt::format("token {}", token), min, max);
    });
  }
}

}  // namespace hearth
