#include "ui/draw/tiles.h"

#include <algorithm>
#include <cfloat>

#include "ui/draw/plot.h"
#include "ui/fonts.h"

namespace hearth {

void draw_tiles(const Theme& theme, std::span<const NamedNumber> tiles) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float gap = theme.px(14), small = small_text_size(), normal = ImGui::GetFontSize();
  const bool has_headline = std::ranges::any_of(tiles, &NamedNumber::headline);
  const float value_height = has_headline ? large_text_size() : normal;
  const float height = small + value_height + theme.px(3);
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  float end = 0;
  for (size_t i = 0; i < tiles.size(); ++i) {
    const NamedNumber& tile = tiles[i];
    // A minimum width keeps tiles in place when a number gets another digit.
    ImFont* const font = tile.headline ? bold_font() : ImGui::GetFont();
    const float size = tile.headline ? large_text_size() : normal;
    const float digits =
        std::max(font->CalcTextSizeA(size, FLT_MAX, 0, tile.value.c_str()).x, theme.px(36));
    const float width = std::max(small_text_extent(tile.name).x, digits);
    if (i > 0 && end + gap + width <= right) ImGui::SameLine(0, gap);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    draw_small_text(draw, at, faded(theme.text_color(), 0.65f), tile.name);
    // All values have the same bottom.
    draw.AddText(font, size, {at.x, at.y + small + theme.px(1) + value_height - size},
                 theme.text_color(), tile.value.c_str());
    ImGui::Dummy({width, height});
    if (!tile.tooltip.empty()) ImGui::SetItemTooltip("%s", tile.tooltip.c_str());
    end = at.x + width;
  }
}

namespace {

float headline_value_width(const Theme& theme, const std::string& value) {
  // A minimum width keeps what follows in place when the number gets another digit.
  return std::max(bold_font()->CalcTextSizeA(large_text_size(), FLT_MAX, 0, value.c_str()).x,
                  theme.px(28));
}

}  // namespace

float headline_width(const Theme& theme, const std::string& value, const char* name) {
  return headline_value_width(theme, value) + theme.px(5) + small_text_extent(name).x;
}

void draw_headline(const Theme& theme, const std::string& value, const char* name,
                   const char* tooltip) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = ImGui::GetFrameHeight(), large = large_text_size();
  const float top = at.y + (height - large) / 2;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddText(bold_font(), large, {at.x, top}, theme.text_color(), value.c_str());
  // On the same base line.
  const float end = bold_font()->CalcTextSizeA(large, FLT_MAX, 0, value.c_str()).x + theme.px(5);
  draw_small_text(draw, {at.x + end, top + (large - small_text_size()) * 0.8f},
                  faded(theme.text_color(), 0.65f), name);
  ImGui::Dummy({headline_width(theme, value, name), height});
  ImGui::SetItemTooltip("%s", tooltip);
}

bool same_line_if_fits(float width, float spacing) {
  const float gap = spacing < 0 ? ImGui::GetStyle().ItemSpacing.x : spacing;
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  if (ImGui::GetItemRectMax().x + gap + width > right) return false;
  ImGui::SameLine(0, gap);
  return true;
}

float button_width(const char* label) {
  return ImGui::CalcTextSize(label, nullptr, true).x + 2 * ImGui::GetStyle().FramePadding.x;
}

float checkbox_width(const char* label) {
  return ImGui::GetFrameHeight() + ImGui::GetStyle().ItemInnerSpacing.x +
         ImGui::CalcTextSize(label, nullptr, true).x;
}

bool outlined_checkbox(const char* label, bool* value) {
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, ImGui::GetColorU32(ImGuiCol_Text, 0.45f));
  const bool changed = ImGui::Checkbox(label, value);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  return changed;
}

}  // namespace hearth
