// A plot in a rectangle: two axes with ticks and units, and the data between them. A Plot object
// lives within one frame:
//
//   Plot plot(theme, "##tokens", {.size = {width, height}, .x = {...}, .y = {...}});
//   plot.area(points, {}, color);
//   plot.line(points, color);
//   plot.reference(budget, theme.warning_color(), "budget");
//   if (plot.hovered()) { plot.crosshair(); ImGui::SetTooltip(...); }
//
// The constructor adds one item to the current window (an invisible button with the given id) and
// draws the axes. Data is clipped to the plot. Points must be in ascending order of x; if there is
// a point for every two pixels, each pixel column shows its minimum and maximum. The cost is linear
// in the points passed in, so pass only the visible ones.
#pragma once

#include <limits>
#include <span>

#include <imgui.h>

#include "ui/data/axis.h"
#include "ui/draw/legend.h"
#include "ui/theme.h"

namespace hearth {

struct PlotPoint {
  double x = 0, y = 0;
};
struct PlotBar {
  double from = 0, to = 0;  // on the x axis
  double height = 0;        // on the y axis
};

struct PlotAxis {
  double min = 0, max = 1;
  bool logarithmic = false;  // requires min > 0
  Unit unit = Unit::kPlain;
  bool ticks = true;            // grid lines; without them there are no labels either
  bool labels = true;           // numbers at the ticks; without them their space is saved
  const char* title = nullptr;  // above the plot, on the left: what the y axis shows
};

struct PlotOptions {
  ImVec2 size{0, 0};  // 0: the space left in the window
  PlotAxis x, y;
  float left = -1;  // space for y labels, to align plots; negative: plot_label_width() or none
  std::span<const LegendEntry> legend;  // above the plot, after the title
};
float plot_label_width();

class Plot {
 public:
  Plot(const Theme& theme, const char* id, const PlotOptions& options);
  ~Plot();
  Plot(const Plot&) = delete;
  Plot& operator=(const Plot&) = delete;

  // Points further apart than `gap` are not connected: nothing was measured between them.
  void line(std::span<const PlotPoint> points, ImU32 color, float thickness = 1.5f,
            double gap = std::numeric_limits<double>::infinity());
  // Each value holds until the next point; the last one has no length.
  void steps(std::span<const PlotPoint> points, ImU32 color, float thickness = 1.5f);
  // Fills from `bottom` up to `top`, which have the same x values. An empty bottom is the axis. For
  // stacked areas pass the area below as the bottom.
  void area(std::span<const PlotPoint> top, std::span<const PlotPoint> bottom, ImU32 color);
  void bars(std::span<const PlotBar> bars, ImU32 color);
  // One bar between two heights, for stacked bars.
  void bar(double from, double to, double bottom, double top, ImU32 color);
  // Returns true if the mouse is over it.
  bool dot(PlotPoint at, float radius, ImU32 color);
  // A dashed horizontal line, its name at the right end, above the plot if the line is at its top.
  void reference(double y, ImU32 color, const char* name);
  // A vertical line, its name at the top.
  void marker(double x, ImU32 color, const char* name);

  // Drawn inside, top left, over the data, so call it last. Omitted if it would hide half of the
  // plot.
  void legend(std::span<const LegendEntry> entries);

  bool hovered() const { return hovered_; }  // the mouse is inside the plot
  bool clicked() const { return clicked_; }
  double mouse_x() const { return x_value(ImGui::GetMousePos().x); }
  // Thin lines through the mouse position.
  void crosshair();

  float x_pixel(double value) const;
  float y_pixel(double value) const;
  double x_value(float pixel) const;
  double y_value(float pixel) const;
  // The rectangle in which data is drawn.
  ImVec2 top_left() const { return top_left_; }
  ImVec2 bottom_right() const { return bottom_right_; }
  ImDrawList& canvas() { return *draw_; }

 private:
  void draw_axes();
  void draw_heading(std::span<const LegendEntry> legend, ImVec2 corner, float width);
  void envelope(std::span<const PlotPoint> points, ImU32 color, float thickness);
  void text(ImVec2 at, ImU32 color, const char* text);

  const Theme& theme_;
  PlotAxis x_, y_;
  ImDrawList* draw_;
  ImVec2 top_left_, bottom_right_;
  float heading_ = 0;  // height of the title and the legend above the plot
  bool hovered_ = false, clicked_ = false;
};

// Text smaller than the normal size, for axes and cells.
float small_text_size();
ImVec2 small_text_extent(const char* text);
void draw_small_text(ImDrawList& draw, ImVec2 at, ImU32 color, const char* text);
// The same colour with its opacity multiplied by `opacity`.
ImU32 faded(ImU32 color, float opacity);
// Black or white, whichever has more contrast with the colour.
ImU32 readable_on(ImU32 color);

}  // namespace hearth
