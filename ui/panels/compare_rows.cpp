#include "ui/panels/compare_rows.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "ui/data/axis.h"
#include "ui/draw/plot.h"
#include "ui/draw/timeline_cells.h"
#include "ui/theme.h"

namespace hearth {
namespace {

// Steps with no more than this between them are drawn without a gap.
constexpr double kNoGapSeconds = 1e-4;

void draw_compared_row(const Theme& theme, ImDrawList& draw, const ComparedRowsView& view,
                       const TimelineRow& row, float corner, float top, float bottom) {
  const TimelineData& data = view.data;
  const uint64_t end_column = row.end_column(data.end_column());
  const std::span<const TimelineRow::Run> runs = row.runs();
  float drawn_until = 0;
  for (size_t i = row.run_at(data.first_column()); i < runs.size(); ++i) {
    const uint64_t run_end =
        std::min(i + 1 < runs.size() ? runs[i + 1].first : end_column, end_column);
    uint64_t from = std::max(runs[i].first, data.first_column());
    const bool works = runs[i].cell.tokens > 0;
    while (from < run_end) {
      // Up to a gap in which nothing ran; waiting goes on meanwhile.
      uint64_t to = from + 1;
      while (to < run_end && (!works || data.column(to).start_seconds() <=
                                            data.column(to - 1).end_seconds + kNoGapSeconds))
        ++to;
      const float left =
          std::max(view.axis.x_of(data.column(from).start_seconds(), corner), drawn_until);
      const float right = view.axis.x_of(data.column(to - 1).end_seconds, corner);
      from = to;
      if (right - left < 0.5f) continue;
      draw_timeline_run(theme, draw, runs[i].cell, {.from = {left, top}, .to = {right, bottom}});
      drawn_until = right;
    }
  }
}

// The column that runs at this time, or the end of all columns.
uint64_t column_at_time(const TimelineData& data, double seconds) {
  uint64_t low = data.first_column(), high = data.end_column();
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (data.column(middle).end_seconds < seconds)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void compared_tooltip(const ComparedRowsView& view, const TimelineRow& row, double seconds) {
  const uint64_t column = column_at_time(view.data, seconds);
  if (column >= view.data.end_column() || !ImGui::BeginTooltip()) return;
  const TimelineCell cell = row.cell(column);
  const TimelineColumn& step = view.data.column(column);
  ImGui::Text("Request #%llu at %s", static_cast<unsigned long long>(row.request()),
              format_value(seconds, Unit::kSeconds).c_str());
  ImGui::TextUnformatted(cell.state == CellState::kNone ? "not present"
                                                        : cell_state_name(cell.state));
  ImGui::TextDisabled("Step %llu: %u tokens for %u sequences, %u padding",
                      static_cast<unsigned long long>(step.step),
                      step.prompt_tokens + step.decode_tokens, step.members, step.padding_tokens);
  ImGui::EndTooltip();
}

}  // namespace

double draw_compared_rows(const PanelContext& context, const ComparedRowsView& view, ImVec2 size) {
  const Theme& theme = context.theme;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton(view.id, {std::max(size.x, 1.0f), std::max(size.y, 1.0f)});
  const float height = size.y / static_cast<float>(std::max<size_t>(view.rows, 1));
  const ImVec2 left_top(at.x + view.axis.left, at.y);
  const ImVec2 right_bottom(left_top.x + view.axis.width, at.y + size.y);
  draw.AddRectFilled(left_top, right_bottom, faded(theme.faint_color(), 0.35f));
  draw.PushClipRect(at, right_bottom, true);
  // Labels only as often as they fit.
  const auto every = static_cast<size_t>(std::ceil(small_text_size() / std::max(height, 0.1f)));
  for (size_t i = 0; i < view.data.rows(); ++i) {
    const TimelineRow& row = view.data.row(i);
    const float top = at.y + height * static_cast<float>(i), bottom = top + height;
    const bool marked = context.selection.marked() == row.request();
    if (marked)
      draw.AddRectFilled({at.x, top}, {right_bottom.x, bottom}, faded(theme.text_color(), 0.15f));
    if (i % every == 0) {
      const std::string name = fmt::format("#{}", row.request());
      draw_small_text(draw,
                      {left_top.x - small_text_extent(name.c_str()).x - theme.px(5),
                       top + std::max((height - small_text_size()) / 2, 0.0f) - theme.px(1)},
                      faded(theme.text_color(), marked ? 1 : 0.7f), name.c_str());
    }
    draw_compared_row(theme, draw, view, row, at.x, top, bottom);
  }
  draw.PopClipRect();
  const auto line = [&](double seconds, ImU32 color, float thickness) {
    const float x = std::round(view.axis.x_of(seconds, at.x));
    draw.AddLine({x, at.y}, {x, right_bottom.y}, color, thickness);
  };
  if (view.finished_at >= 0) line(view.finished_at, theme.text_color(), theme.px(2));
  line(view.now, faded(theme.text_color(), 0.6f), 1);

  if (!ImGui::IsItemHovered()) return -1;
  const ImVec2 mouse = ImGui::GetMousePos();
  const double seconds = view.axis.seconds_at(mouse.x, at.x);
  const auto index = static_cast<size_t>(std::max((mouse.y - at.y) / height, 0.0f));
  if (index < view.data.rows()) {
    context.selection.next_hovered = view.data.row(index).request();
    compared_tooltip(view, view.data.row(index), seconds);
  }
  return ImGui::IsMouseDown(ImGuiMouseButton_Left) ? std::max(seconds, 0.0) : -1;
}

void draw_time_axis(const Theme& theme, const TimeAxis& axis, double now) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImU32 color = faded(theme.text_color(), 0.75f);
  const auto labels = static_cast<int>(axis.width / theme.px(80));
  for (const AxisTick& tick : axis_ticks(0, axis.end, false, Unit::kSeconds, std::max(labels, 2))) {
    const float x = std::round(axis.x_of(tick.value, at.x));
    draw.AddLine({x, at.y - theme.px(2)}, {x, at.y + theme.px(2)}, color);
    const float right = at.x + axis.left + axis.width - small_text_extent(tick.label.c_str()).x;
    draw_small_text(draw, {std::min(x + theme.px(3), right), at.y}, color, tick.label.c_str());
  }
  const float x = std::round(axis.x_of(now, at.x));
  draw.AddTriangleFilled({x, at.y - theme.px(3)}, {x - theme.px(4), at.y + theme.px(4)},
                         {x + theme.px(4), at.y + theme.px(4)}, theme.text_color());
  ImGui::Dummy({axis.left + axis.width, small_text_size() + theme.px(4)});
}

}  // namespace hearth
