#include "ui/draw/plot.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace hearth {
namespace {

double position(const PlotAxis& axis, double value) {
  if (!axis.logarithmic) return (value - axis.min) / (axis.max - axis.min);
  if (value <= 0) return -1;
  return std::log(value / axis.min) / std::log(axis.max / axis.min);
}

double value_at(const PlotAxis& axis, double position) {
  if (!axis.logarithmic) return axis.min + position * (axis.max - axis.min);
  return axis.min * std::pow(axis.max / axis.min, position);
}

// Widens an empty or invalid range, so that positions never divide by zero.
PlotAxis with_valid_range(PlotAxis axis) {
  if (axis.logarithmic && !(axis.min > 0)) axis.min = axis.max > 0 ? axis.max / 10 : 1;
  if (!(axis.max > axis.min)) axis.max = axis.logarithmic ? axis.min * 10 : axis.min + 1;
  return axis;
}

}  // namespace

float plot_label_width() { return std::ceil(small_text_size() * 4.4f); }

float small_text_size() { return std::round(ImGui::GetFontSize() * 0.85f); }

ImVec2 small_text_extent(const char* text) {
  return ImGui::GetFont()->CalcTextSizeA(small_text_size(), FLT_MAX, 0, text);
}

void draw_small_text(ImDrawList& draw, ImVec2 at, ImU32 color, const char* text) {
  draw.AddText(ImGui::GetFont(), small_text_size(), {std::round(at.x), std::round(at.y)}, color,
               text);
}

ImU32 faded(ImU32 color, float opacity) {
  const auto alpha = static_cast<float>((color >> IM_COL32_A_SHIFT) & 0xff) * opacity;
  return (color & ~IM_COL32_A_MASK) | (static_cast<ImU32>(alpha) << IM_COL32_A_SHIFT);
}

ImU32 readable_on(ImU32 color) {
  const ImVec4 c = ImGui::ColorConvertU32ToFloat4(color);
  return 0.3f * c.x + 0.59f * c.y + 0.11f * c.z > 0.5f ? IM_COL32(0, 0, 0, 230)
                                                       : IM_COL32(255, 255, 255, 240);
}

Plot::Plot(const Theme& theme, const char* id, const PlotOptions& options)
    : theme_(theme),
      x_(with_valid_range(options.x)),
      y_(with_valid_range(options.y)),
      draw_(ImGui::GetWindowDrawList()) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  ImVec2 size = options.size;
  if (size.x <= 0) size.x = room.x;
  if (size.y <= 0) size.y = room.y;
  size = {std::max(size.x, theme.px(40)), std::max(size.y, theme.px(20))};
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  clicked_ = ImGui::InvisibleButton(id, size);
  const bool over = ImGui::IsItemHovered();

  const float line = small_text_size();
  const float left = options.left >= 0 ? options.left : y_.labels ? plot_label_width() : 0;
  top_left_ = {corner.x + std::min(left, size.x / 2), corner.y + theme.px(2)};
  const float wide = corner.x + size.x - top_left_.x;
  const float title = y_.title ? small_text_extent(y_.title).x + theme.px(12) : 0;
  // A plot that would be lower than its heading has none.
  heading_ = options.legend.empty() ? (y_.title ? line + theme.px(2) : 0)
                                    : legend_height(theme, options.legend, wide - title);
  if (heading_ > size.y * 0.5f) heading_ = 0;
  if (heading_ > 0) draw_heading(options.legend, top_left_, wide);
  top_left_.y += heading_;
  bottom_right_ = {corner.x + size.x, corner.y + size.y - (x_.labels ? line + theme.px(4) : 1)};
  bottom_right_.y = std::max(bottom_right_.y, top_left_.y + 1);
  const ImVec2 mouse = ImGui::GetMousePos();
  hovered_ = over && mouse.x >= top_left_.x && mouse.x <= bottom_right_.x &&
             mouse.y >= top_left_.y && mouse.y <= bottom_right_.y;
  clicked_ = clicked_ && hovered_;
  draw_axes();
  draw_->PushClipRect(top_left_, {bottom_right_.x, bottom_right_.y + 1}, true);
}

Plot::~Plot() { draw_->PopClipRect(); }

void Plot::draw_heading(std::span<const LegendEntry> legend, ImVec2 corner, float width) {
  float title = 0;
  if (y_.title) {
    text({corner.x, corner.y}, faded(theme_.text_color(), 0.85f), y_.title);
    title = small_text_extent(y_.title).x + theme_.px(12);
  }
  if (!legend.empty())
    draw_legend_at(theme_, *draw_, {corner.x + title, corner.y - theme_.px(1)}, width - title,
                   legend);
}

float Plot::x_pixel(double value) const {
  const double share = std::clamp(position(x_, value), -4.0, 5.0);
  return top_left_.x + static_cast<float>(share) * (bottom_right_.x - top_left_.x);
}
float Plot::y_pixel(double value) const {
  const double share = std::clamp(position(y_, value), -4.0, 5.0);
  return bottom_right_.y - static_cast<float>(share) * (bottom_right_.y - top_left_.y);
}
double Plot::x_value(float pixel) const {
  return value_at(x_, static_cast<double>((pixel - top_left_.x) / (bottom_right_.x - top_left_.x)));
}
double Plot::y_value(float pixel) const {
  return value_at(y_,
                  static_cast<double>((bottom_right_.y - pixel) / (bottom_right_.y - top_left_.y)));
}

void Plot::text(ImVec2 at, ImU32 color, const char* text) {
  draw_small_text(*draw_, at, color, text);
}

void Plot::draw_axes() {
  const ImU32 faint = theme_.faint_color();
  const ImU32 label_color = faded(theme_.text_color(), 0.75f);
  const float height = bottom_right_.y - top_left_.y, width = bottom_right_.x - top_left_.x;
  const float line = small_text_size();

  const int max_y_labels = std::clamp(static_cast<int>(height / (line * 2.2f)), 2, 6);
  std::vector<AxisTick> xs, ys;
  if (y_.ticks) ys = axis_ticks(y_.min, y_.max, y_.logarithmic, y_.unit, max_y_labels);
  for (const AxisTick& tick : ys) {
    const float y = std::round(y_pixel(tick.value));
    draw_->AddLine({top_left_.x, y}, {bottom_right_.x, y},
                   faded(faint, tick.label.empty() ? 0.3f : 0.7f));
    if (!y_.labels || tick.label.empty()) continue;
    const ImVec2 extent = small_text_extent(tick.label.c_str());
    const float at = std::clamp(y - extent.y / 2, top_left_.y - line * 0.3f,
                                bottom_right_.y - extent.y + line * 0.35f);
    text({top_left_.x - extent.x - theme_.px(5), at}, label_color, tick.label.c_str());
  }

  const int max_x_labels = std::clamp(static_cast<int>(width / theme_.px(70)), 1, 10);
  float free_from = top_left_.x - theme_.px(8);
  if (x_.ticks) xs = axis_ticks(x_.min, x_.max, x_.logarithmic, x_.unit, max_x_labels);
  for (const AxisTick& tick : xs) {
    const float x = std::round(x_pixel(tick.value));
    draw_->AddLine({x, top_left_.y}, {x, bottom_right_.y},
                   faded(faint, tick.label.empty() ? 0.2f : 0.45f));
    if (!x_.labels || tick.label.empty()) continue;
    const ImVec2 extent = small_text_extent(tick.label.c_str());
    const float at = std::min(x - extent.x / 2, bottom_right_.x - extent.x);
    if (at < free_from) continue;
    text({at, bottom_right_.y + theme_.px(2)}, label_color, tick.label.c_str());
    free_from = at + extent.x + theme_.px(8);
  }
  draw_->AddLine({top_left_.x, bottom_right_.y}, bottom_right_, faint);
  draw_->AddLine(top_left_, {top_left_.x, bottom_right_.y}, faint);
}

void Plot::line(std::span<const PlotPoint> points, ImU32 color, float thickness, double gap) {
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].x - points[i - 1].x <= gap) continue;
    line(points.first(i), color, thickness);
    return line(points.subspan(i), color, thickness, gap);
  }
  if (points.size() == 1) {
    dot(points[0], theme_.px(thickness), color);
    return;
  }
  if (points.empty()) return;
  const float width = x_pixel(points.back().x) - x_pixel(points.front().x);
  // Soft edges are lost on points this dense, and steep lines cost the most where the CPU draws.
  if (2 * static_cast<float>(points.size()) > width) return envelope(points, color, thickness);
  draw_->PathClear();
  for (const PlotPoint& point : points) draw_->PathLineTo({x_pixel(point.x), y_pixel(point.y)});
  draw_->PathStroke(color, 0, theme_.px(thickness));
}

// Draws a line with about as many points as pixels: each pixel column from its minimum to its
// maximum.
void Plot::envelope(std::span<const PlotPoint> points, ImU32 color, float thickness) {
  const float half = std::max(theme_.px(thickness) / 2, 0.5f);
  float last = y_pixel(points[0].y);
  for (size_t i = 0; i < points.size();) {
    const float column = std::floor(x_pixel(points[i].x));
    float low = last, high = last, next = column + 1;
    for (; i < points.size(); ++i) {
      const float x = x_pixel(points[i].x);
      if (x >= column + 1) {
        next = std::floor(x);
        break;
      }
      last = y_pixel(points[i].y);
      low = std::max(low, last);
      high = std::min(high, last);
    }
    draw_->AddRectFilled({column, high - half}, {column + 1, low + half}, color);
    // Bridges pixel columns without a point.
    if (next > column + 1)
      draw_->AddRectFilled({column + 1, last - half}, {next, last + half}, color);
  }
}

void Plot::steps(std::span<const PlotPoint> points, ImU32 color, float thickness) {
  // Rectangles instead of a path, whose joints look uneven where a step is small.
  const float half = std::max(theme_.px(thickness) / 2, 0.5f);
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    const float left = x_pixel(points[i].x), y = y_pixel(points[i].y);
    // Merges neighbours of the same height into one line.
    while (i + 2 < points.size() && y_pixel(points[i + 1].y) == y) ++i;
    const float right = x_pixel(points[i + 1].x), next = y_pixel(points[i + 1].y);
    draw_->AddRectFilled({left - half, y - half}, {right + half, y + half}, color);
    if (next != y)
      draw_->AddRectFilled({right - half, std::min(y, next)}, {right + half, std::max(y, next)},
                           color);
  }
}

void Plot::area(std::span<const PlotPoint> top, std::span<const PlotPoint> bottom, ImU32 color) {
  const float floor = y_pixel(y_.min);
  const size_t count = bottom.empty() ? top.size() : std::min(top.size(), bottom.size());
  if (count < 2) return;
  const ImDrawListFlags flags = draw_->Flags;
  // Anti-aliased edges would show as seams between the strips.
  draw_->Flags &= ~ImDrawListFlags_AntiAliasedFill;
  const auto high = [&](size_t i) { return ImVec2(x_pixel(top[i].x), y_pixel(top[i].y)); };
  const auto low = [&](size_t i) {
    return ImVec2(x_pixel(top[i].x), bottom.empty() ? floor : y_pixel(bottom[i].y));
  };
  ImVec2 last_high = high(0), last_low = low(0);
  for (size_t i = 1; i < count; ++i) {
    const ImVec2 next_high = high(i);
    if (next_high.x - last_high.x < 1 && i + 1 < count) continue;
    const ImVec2 next_low = low(i);
    draw_->AddQuadFilled(last_low, last_high, next_high, next_low, color);
    last_high = next_high;
    last_low = next_low;
  }
  draw_->Flags = flags;
}

void Plot::bars(std::span<const PlotBar> bars, ImU32 color) {
  for (const PlotBar& each : bars)
    if (each.height > 0) bar(each.from, each.to, y_.min, each.height, color);
}

void Plot::bar(double from, double to, double bottom, double top, ImU32 color) {
  float left = x_pixel(from), right = x_pixel(to);
  const float high = y_pixel(top), low = y_pixel(bottom);
  if (low - high <= 0) return;
  if (right - left >= theme_.px(3)) right -= std::max(1.0f, std::floor(theme_.px(1)));
  right = std::max(right, left + 1);
  draw_->AddRectFilled({left, std::min(high, low - 1)}, {right, low}, color);
}

bool Plot::dot(PlotPoint at, float radius, ImU32 color) {
  const ImVec2 center(x_pixel(at.x), y_pixel(at.y));
  draw_->AddCircleFilled(center, radius, color);
  if (!hovered_) return false;
  const ImVec2 mouse = ImGui::GetMousePos();
  const float reach = radius + theme_.px(3);
  const float dx = mouse.x - center.x, dy = mouse.y - center.y;
  return dx * dx + dy * dy <= reach * reach;
}

void Plot::reference(double y, ImU32 color, const char* name) {
  const float at = std::round(y_pixel(y));
  const float dash = theme_.px(5);
  for (float x = top_left_.x; x < bottom_right_.x; x += 2 * dash)
    draw_->AddLine({x, at}, {std::min(x + dash, bottom_right_.x), at}, color, theme_.px(1));
  if (!name) return;
  const ImVec2 extent = small_text_extent(name);
  const float x = bottom_right_.x - extent.x - theme_.px(4);
  // Beside the heading if there is no space above the line, and below the line without a heading.
  if (at - extent.y >= top_left_.y) return text({x, at - extent.y}, color, name);
  if (heading_ == 0) return text({x, at + theme_.px(1)}, color, name);
  draw_->PopClipRect();
  text({x, top_left_.y - heading_}, color, name);
  draw_->PushClipRect(top_left_, {bottom_right_.x, bottom_right_.y + 1}, true);
}

void Plot::marker(double x, ImU32 color, const char* name) {
  const float at = std::round(x_pixel(x));
  draw_->AddLine({at, top_left_.y}, {at, bottom_right_.y}, color, theme_.px(1));
  if (!name) return;
  const ImVec2 extent = small_text_extent(name);
  const bool right = at + extent.x + theme_.px(4) <= bottom_right_.x;
  text({right ? at + theme_.px(3) : at - extent.x - theme_.px(3), top_left_.y}, color, name);
}

void Plot::legend(std::span<const LegendEntry> entries) {
  const ImVec2 at(top_left_.x + theme_.px(6), top_left_.y + theme_.px(1));
  const float width = bottom_right_.x - at.x;
  if (legend_height(theme_, entries, width) > (bottom_right_.y - top_left_.y) / 2) return;
  draw_legend_over(theme_, *draw_, at, width, entries);
}

void Plot::crosshair() {
  if (!hovered_) return;
  const ImVec2 mouse = ImGui::GetMousePos();
  const ImU32 color = faded(theme_.text_color(), 0.35f);
  draw_->AddLine({mouse.x, top_left_.y}, {mouse.x, bottom_right_.y}, color);
  draw_->AddLine({top_left_.x, mouse.y}, {bottom_right_.x, mouse.y}, color);
}

}  // namespace hearth
