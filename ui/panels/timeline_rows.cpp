#include "ui/panels/timeline_rows.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include <fmt/format.h>

#include "ui/data/axis.h"
#include "ui/draw/legend.h"
#include "ui/draw/plot.h"
#include "ui/draw/timeline_cells.h"
#include "ui/theme.h"

namespace hearth {
namespace {

void row_tooltip(const TimelineData& data, const TimelineRow& row, uint64_t column) {
  if (!ImGui::BeginTooltip()) return;
  ImGui::Text("Request #%llu", static_cast<unsigned long long>(row.request()));
  if (row.max_tokens() > 0)
    ImGui::TextDisabled("prompt of %u tokens, at most %u tokens in total", row.prompt_tokens(),
                        row.max_tokens());
  if (column < data.end_column()) {
    const TimelineCell cell = row.cell(column);
    const TimelineColumn& step = data.column(column);
    ImGui::Separator();
    ImGui::Text("Step %llu: %s", static_cast<unsigned long long>(step.step),
                cell.state == CellState::kNone ? "not present" : cell_state_name(cell.state));
    const uint32_t last = cell.first_position + cell.tokens - 1;
    const char* samples = cell.samples ? ", samples the next token" : "";
    if (cell.tokens == 1)
      ImGui::Text("1 token at position %u%s", last, samples);
    else if (cell.tokens > 1)
      ImGui::Text("%u tokens at positions %u to %u%s", cell.tokens, cell.first_position, last,
                  samples);
    if (cell.prefix_tokens > 0) ImGui::Text("prefix cache hit: %u tokens", cell.prefix_tokens);
    if (cell.recomputed > 0)
      ImGui::Text("%u of them had been computed before: their keys and values were not kept",
                  cell.recomputed);
    if (cell.proposed > 0)
      ImGui::Text("%u guesses of speculation: %u accepted, %u rejected", cell.proposed,
                  cell.accepted, cell.rejected());
    if (cell.forced > 0)
      ImGui::Text("%u of them forced: the grammar allowed nothing else", cell.forced);
    if (cell.padding > 0) ImGui::Text("padding: %u tokens in this row", cell.padding);
    ImGui::TextDisabled("The step took %s.", format_value(step.seconds(), Unit::kSeconds).c_str());
  } else {
    ImGui::TextDisabled("%s", row.finished() ? "ended" : cell_state_name(row.state()));
  }
  ImGui::EndTooltip();
}

}  // namespace

void pan_and_zoom(TimelineWindow& window, float left) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left) &&
      io.MouseDelta.x != 0)
    window.move(-static_cast<double>(io.MouseDelta.x) / window.pixels_per_column());
  if (!ImGui::IsItemHovered()) return;
  const double at = static_cast<double>(io.MousePos.x - left) / window.width();
  if (io.KeyCtrl && io.MouseWheel != 0)
    window.zoom(std::pow(1.25, static_cast<double>(io.MouseWheel)), at);
  if (io.MouseWheelH != 0)
    window.move(-static_cast<double>(io.MouseWheelH) * window.columns() / 12);
}

void draw_missed_steps(const Theme& theme, ImDrawList& draw, const TimelineData& data,
                       const TimelineWindow& window, float left, float top, float bottom) {
  for (uint64_t c = window.first_visible(); c < window.end_visible(); ++c) {
    const TimelineColumn& column = data.column(c);
    if (column.policy_changed) {
      const float x = std::round(window.x_of(static_cast<double>(c), left));
      draw.AddLine({x, top}, {x, bottom}, faded(theme.text_color(), 0.6f), theme.px(1.5f));
    }
    if (column.missed_before == 0) continue;
    const float x = std::round(window.x_of(static_cast<double>(c), left));
    for (float y = top; y < bottom; y += theme.px(6))
      draw.AddLine({x, y}, {x, std::min(y + theme.px(3), bottom)}, theme.warning_color());
  }
}

void TimelineRows::draw(const PanelContext& context, const TimelineData& data,
                        TimelineWindow& window, ImVec2 size, float left) {
  const Theme& theme = context.theme;
  data.rows_between(window.first_visible(), window.end_visible(), visible_);
  // How many rows it takes to show all that have work: those that wait may stand between them.
  size_t ran = visible_.size();
  while (ran > 0 && data.row(visible_[ran - 1]).state() == CellState::kWaiting) --ran;
  const auto fitting = [&](size_t rows) {
    return size.y / static_cast<float>(std::max<size_t>(rows, 1));
  };
  // Rows with work become lower than their text, so that all of them are seen; those that wait are
  // scrolled.
  float height = std::max(fitting(visible_.size()), std::min(fitting(ran), small_text_size()));
  height = std::floor(std::clamp(height, theme.px(7), theme.px(18)));
  // Rows that do not all fit are shown whole: no half row at the top or the bottom.
  if (const float shown = std::floor(size.y / height);
      shown >= 1 && shown < static_cast<float>(visible_.size())) {
    height = std::floor(size.y / shown);
    size.y = shown * height;
  }
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::BeginChild("timeline rows", size, 0,
                    ImGuiWindowFlags_AlwaysVerticalScrollbar | ImGuiWindowFlags_NoMove);
  ImGui::PopStyleVar();
  const ImVec2 inside = ImGui::GetContentRegionAvail();
  const float total = height * static_cast<float>(visible_.size());
  const RowArea area{.context = context,
                     .data = data,
                     .window = window,
                     .draw = *ImGui::GetWindowDrawList(),
                     .corner = ImGui::GetCursorScreenPos(),
                     .left = left,
                     .width = inside.x,
                     .row_height = height};
  if (static_cast<float>(ran) * height > inside.y || !window.following())
    scroll_to_live_rows(data, window, height, inside.y);
  else if (!scrolled_by_hand_)
    ImGui::SetScrollY(0);
  ImGui::InvisibleButton("timeline cells",
                         {std::max(inside.x, 1.0f), std::max({total, inside.y, 1.0f})});
  const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight();
  const auto row_at = [&](float y) {
    return std::min(static_cast<size_t>(std::max(0.0f, (y - area.corner.y) / height)),
                    visible_.size());
  };
  const size_t end_row = std::min(row_at(bottom) + 1, visible_.size());
  for (size_t i = row_at(top); i < end_row; ++i) draw_row(area, data.row(visible_[i]), i);
  draw_column_lines(area, top,
                    std::min(bottom, area.corner.y + height * static_cast<float>(end_row)));
  draw_missed_steps(theme, area.draw, data, window, area.corner.x + left, top, bottom);
  handle_mouse(area);
  ImGui::EndChild();
}

// While following, scrolls past ended rows to those that are still running or waiting.
void TimelineRows::scroll_to_live_rows(const TimelineData& data, const TimelineWindow& window,
                                       float height, float room) {
  const float total = height * static_cast<float>(visible_.size());
  if (!window.following()) scrolled_by_hand_ = false;
  if (!window.following() || scrolled_by_hand_ || total <= room) return;
  size_t live = 0;
  while (live < visible_.size() && data.row(visible_[live]).state() == CellState::kNone) ++live;
  const float before = std::floor(room * 0.25f / height);
  const float to = (static_cast<float>(live) - before) * height;
  ImGui::SetScrollY(std::clamp(to, 0.0f, total - room));
}

void TimelineRows::draw_row(const RowArea& area, const TimelineRow& row, size_t index) {
  const Theme& theme = area.context.theme;
  ImDrawList& draw = area.draw;
  const ImVec2 at(area.corner.x, area.corner.y + static_cast<float>(index) * area.row_height);
  const ImVec2 end(at.x + area.width, at.y + area.row_height);
  const bool marked = area.context.selection.marked() == row.request();
  if (marked) draw.AddRectFilled(at, end, faded(theme.text_color(), 0.12f));

  const float swatch = std::round(std::min(area.row_height - theme.px(4), theme.px(8)));
  const float middle = (at.y + end.y) / 2, swatch_top = std::round(middle - swatch / 2);
  draw.AddRectFilled({at.x + theme.px(2), swatch_top},
                     {at.x + theme.px(2) + swatch, swatch_top + swatch},
                     theme.sequence_color(row.request()), theme.px(1));
  // In low rows, names only as often as they fit.
  const auto every = static_cast<size_t>(std::ceil(small_text_size() / area.row_height));
  const float text_top = middle - small_text_size() / 2;
  const bool whole = text_top >= draw.GetClipRectMin().y &&
                     text_top + small_text_size() <= draw.GetClipRectMax().y + theme.px(2);
  if (index % every == every / 2 && whole) {
    const std::string name = fmt::format("#{}", row.request());
    draw_small_text(draw,
                    {at.x + area.left - small_text_extent(name.c_str()).x - theme.px(5),
                     middle - small_text_size() / 2 - theme.px(1)},
                    faded(theme.text_color(), marked ? 1 : 0.75f), name.c_str());
  }

  draw.PushClipRect({at.x + area.left, at.y}, end, true);
  const std::span<const TimelineRow::Run> runs = row.runs();
  const uint64_t first_column = area.window.first_visible();
  const uint64_t end_column =
      std::min(row.end_column(area.data.end_column()), area.window.end_visible());
  float drawn_until = 0;
  for (size_t i = row.run_at(first_column); i < runs.size() && runs[i].first < end_column; ++i) {
    const uint64_t run_end = i + 1 < runs.size() ? runs[i + 1].first : end_column;
    const uint64_t from = std::max(runs[i].first, first_column);
    const uint64_t to = std::min(run_end, end_column);
    if (to <= from) continue;
    const float first_x = area.x_of(from), end_x = area.x_of(to);
    // If several cells share a pixel, the first one is shown.
    if (end_x - drawn_until < 0.5f) continue;
    draw_timeline_run(theme, draw, runs[i].cell,
                      {.from = {std::max(first_x, drawn_until), at.y},
                       .to = {end_x, end.y},
                       .first_x = first_x,
                       .pitch = static_cast<float>(area.window.pixels_per_column()),
                       .columns = to - from});
    drawn_until = end_x;
  }
  draw.PopClipRect();
}

// Draws the lines between cells over the runs.
void TimelineRows::draw_column_lines(const RowArea& area, float top, float bottom) {
  if (area.window.pixels_per_column() < static_cast<double>(area.context.theme.px(4))) return;
  const ImU32 back = ImGui::GetColorU32(ImGuiCol_ChildBg);
  for (uint64_t c = area.window.first_visible(); c <= area.window.end_visible(); ++c) {
    const float x = std::round(area.x_of(c));
    if (x > area.corner.x + area.left) area.draw.AddRectFilled({x - 1, top}, {x, bottom}, back);
  }
}

void TimelineRows::handle_mouse(const RowArea& area) {
  Selection& selection = area.context.selection;
  const ImVec2 mouse = ImGui::GetMousePos();
  if (ImGui::IsItemHovered()) {
    if (ImGui::GetIO().MouseWheel != 0 && !ImGui::GetIO().KeyCtrl) scrolled_by_hand_ = true;
    const auto index = static_cast<size_t>((mouse.y - area.corner.y) / area.row_height);
    if (index < visible_.size()) {
      const TimelineRow& row = area.data.row(visible_[index]);
      selection.next_hovered = row.request();
      if (ImGui::IsItemClicked()) pressed_ = row.request();
      const float left = area.corner.x + area.left;
      if (!ImGui::IsMouseDragging(ImGuiMouseButton_Left))
        row_tooltip(area.data, row,
                    mouse.x < left ? area.data.end_column()
                                   : area.window.column_at(area.window.column_of(mouse.x, left)));
    }
  }
  if (ImGui::IsMouseReleased(ImGuiMouseButton_Left)) {
    // A press that moved is a drag, not a click.
    const float moved = ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, 0).x;
    if (pressed_ != 0 && std::abs(moved) < area.context.theme.px(4))
      selection.pinned = selection.pinned == pressed_ ? 0 : pressed_;
    pressed_ = 0;
  }
  pan_and_zoom(area.window, area.corner.x + area.left);
}

}  // namespace hearth
