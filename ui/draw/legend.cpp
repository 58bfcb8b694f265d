#include "ui/draw/legend.h"

#include <algorithm>
#include <cmath>

#include "ui/draw/plot.h"

namespace hearth {
namespace {

float mark_size() { return std::round(small_text_size() * 0.95f); }
float entry_gap(const Theme& theme) { return theme.px(10); }
float entry_width(const Theme& theme, const LegendEntry& entry) {
  return mark_size() + theme.px(5) + small_text_extent(entry.text).x;
}
float line_height(const Theme& theme) { return small_text_size() + theme.px(4); }

void draw_mark(const Theme& theme, ImDrawList& draw, ImVec2 at, const LegendEntry& entry) {
  const float size = mark_size();
  const ImVec2 to(at.x + size, at.y + size);
  const float middle = at.y + size / 2;
  switch (entry.mark) {
    case LegendEntry::Mark::kSquare:
      draw.AddRectFilled(at, to, entry.color, theme.px(2));
      break;
    case LegendEntry::Mark::kLine:
      draw.AddLine({at.x, middle}, {to.x, middle}, entry.color, theme.px(2.5f));
      break;
    case LegendEntry::Mark::kDashes:
      draw.AddLine({at.x, middle}, {at.x + size * 0.4f, middle}, entry.color, theme.px(1.5f));
      draw.AddLine({at.x + size * 0.6f, middle}, {to.x, middle}, entry.color, theme.px(1.5f));
      break;
    case LegendEntry::Mark::kDot:
      draw.AddCircleFilled({at.x + size / 2, middle}, size * 0.32f, entry.color);
      break;
    case LegendEntry::Mark::kHatched:
      draw.AddRectFilled(at, to, faded(entry.color, 0.35f), theme.px(2));
      draw_hatching(draw, at, to, entry.color, theme.px(4));
      break;
    case LegendEntry::Mark::kFrame:
      draw.AddRect(at, to, entry.color, theme.px(2), 0, theme.px(1.5f));
      break;
  }
  if (!entry.letter) return;
  const char text[2] = {entry.letter, 0};
  const ImVec2 extent = small_text_extent(text);
  const bool filled = entry.mark == LegendEntry::Mark::kSquare;
  draw_small_text(draw, {at.x + (size - extent.x) / 2, at.y + (size - extent.y) / 2},
                  filled ? readable_on(entry.color) : theme.text_color(), text);
}

// Calls place(entry, x, line) for each entry and returns the number of lines.
template <class Place>
int lay_out(const Theme& theme, std::span<const LegendEntry> entries, float width, Place place) {
  float x = 0;
  int line = 0;
  for (const LegendEntry& entry : entries) {
    const float entry_extent = entry_width(theme, entry);
    if (x > 0 && x + entry_extent > width) {
      x = 0;
      ++line;
    }
    place(entry, x, line);
    x += entry_extent + entry_gap(theme);
  }
  return entries.empty() ? 0 : line + 1;
}

// Returns the height drawn.
float draw_entries(const Theme& theme, ImDrawList& draw, ImVec2 corner, float width,
                   std::span<const LegendEntry> entries) {
  const float mark = mark_size(), height = line_height(theme);
  const int lines =
      lay_out(theme, entries, width, [&](const LegendEntry& entry, float x, int line) {
        const ImVec2 at(corner.x + x, corner.y + static_cast<float>(line) * height);
        draw_mark(theme, draw, {at.x, std::round(at.y + (height - mark) / 2)}, entry);
        const ImVec2 extent = small_text_extent(entry.text);
        draw_small_text(draw, {at.x + mark + theme.px(5), at.y + (height - extent.y) / 2},
                        faded(theme.text_color(), 0.85f), entry.text);
      });
  return static_cast<float>(lines) * height;
}

}  // namespace

void draw_legend(const Theme& theme, std::span<const LegendEntry> entries, float width) {
  if (width <= 0) width = ImGui::GetContentRegionAvail().x;
  const float height =
      draw_entries(theme, *ImGui::GetWindowDrawList(), ImGui::GetCursorScreenPos(), width, entries);
  ImGui::Dummy({width, height});
}

void draw_legend_over(const Theme& theme, ImDrawList& draw, ImVec2 corner, float width,
                      std::span<const LegendEntry> entries) {
  float widest = 0;
  const int lines = lay_out(theme, entries, width, [&](const LegendEntry& entry, float x, int) {
    widest = std::max(widest, x + entry_width(theme, entry));
  });
  const float edge = theme.px(3);
  draw.AddRectFilled(
      {corner.x - edge, corner.y},
      {corner.x + widest + edge, corner.y + static_cast<float>(lines) * line_height(theme)},
      ImGui::GetColorU32(ImGuiCol_ChildBg, 0.92f), theme.px(3));
  draw_entries(theme, draw, corner, width, entries);
}

void draw_legend_at(const Theme& theme, ImDrawList& draw, ImVec2 corner, float width,
                    std::span<const LegendEntry> entries) {
  draw_entries(theme, draw, corner, width, entries);
}

float legend_height(const Theme& theme, std::span<const LegendEntry> entries, float width) {
  const int lines = lay_out(theme, entries, width, [](const LegendEntry&, float, int) {});
  return static_cast<float>(lines) * line_height(theme);
}

void draw_hatching(ImDrawList& draw, ImVec2 from, ImVec2 to, ImU32 color, float spacing) {
  const float width = to.x - from.x, height = to.y - from.y;
  if (width <= 0 || height <= 0) return;
  // Stripes are aligned to the origin, so that adjacent rectangles match.
  const float first = std::ceil((from.x + from.y) / spacing) * spacing;
  for (float sum = first; sum < to.x + to.y; sum += spacing) {
    const float left = std::max(from.x, sum - to.y), right = std::min(to.x, sum - from.y);
    draw.AddLine({left, sum - left}, {right, sum - right}, color);
  }
}

}  // namespace hearth
