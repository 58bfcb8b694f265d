// One plot in a rectangle: two axes with marks and units, and what is drawn between them. A Plot
// lives for part of a frame:
//
//   Plot plot(theme, "##tokens", {.size = {width, height}, .x = {...}, .y = {...}});
//   plot.area(points, {}, color);
//   plot.line(points, color);
//   plot.reference(budget, theme.warning_color(), "budget");
//   if (plot.hovered()) { plot.crosshair(); ImGui::SetTooltip(...); }
//
// The constructor takes its place in the current window as one item (an invisible button with the
// id, which is pressed by clicking) and draws the axes; everything is cut off at the plot's edges.
// Points are in ascending order of x; where there are more than pixels, each column of pixels shows
// its least and greatest. The cost is that of the points passed in, so pass the visible ones.
#pragma once

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
  bool logarithmic = false;  // then min > 0
  Unit unit = Unit::kPlain;
  bool ticks = true;            // marks right across; without them no labels either
  bool labels = true;           // numbers beside the marks; without them their room is saved
  const char* title = nullptr;  // of the y axis, inside, top left: what is shown
};

struct PlotOptions {
  ImVec2 size{0, 0};  // 0: what is left of the window
  PlotAxis x, y;
  float left = -1;  // room for the labels of y, to align plots; below 0: plot_label_room() or none
};
float plot_label_room();

class Plot {
 public:
  Plot(const Theme& theme, const char* id, const PlotOptions& options);
  ~Plot();
  Plot(const Plot&) = delete;
  Plot& operator=(const Plot&) = delete;

  void line(std::span<const PlotPoint> points, ImU32 color, float thickness = 1.5f);
  // Each value holds from its point to the next one's; that of the last has no length.
  void steps(std::span<const PlotPoint> points, ImU32 color, float thickness = 1.5f);
  // From `bottom` up to `top`: the same x each, or an empty bottom for the axis. Stacked areas are
  // drawn by passing the one below as the bottom.
  void area(std::span<const PlotPoint> top, std::span<const PlotPoint> bottom, ImU32 color);
  void bars(std::span<const PlotBar> bars, ImU32 color);
  // A bar from one height to another, for stacks.
  void bar(double from, double to, double bottom, double top, ImU32 color);
  // True if the mouse is on it.
  bool dot(PlotPoint at, float radius, ImU32 color);
  // A line right across at this height, its name at the right end.
  void reference(double y, ImU32 color, const char* name);
  // A line from bottom to top, its name at the top.
  void marker(double x, ImU32 color, const char* name);

  // Inside, top left, over the data: draw it last. Left out where it would hide half of the plot.
  void legend(std::span<const LegendEntry> entries);

  bool hovered() const { return hovered_; }  // the mouse is between the axes
  bool clicked() const { return clicked_; }
  double mouse_x() const { return x_value(ImGui::GetMousePos().x); }
  // Thin lines through the mouse.
  void crosshair();

  float x_pixel(double value) const;
  float y_pixel(double value) const;
  double x_value(float pixel) const;
  double y_value(float pixel) const;
  // Where data is drawn.
  ImVec2 top_left() const { return top_left_; }
  ImVec2 bottom_right() const { return bottom_right_; }
  ImDrawList& canvas() { return *draw_; }

 private:
  void draw_axes();
  void envelope(std::span<const PlotPoint> points, ImU32 color, float thickness);
  void text(ImVec2 at, ImU32 color, const char* text);

  const Theme& theme_;
  PlotAxis x_, y_;
  ImDrawList* draw_;
  ImVec2 top_left_, bottom_right_;
  bool hovered_ = false, clicked_ = false;
};

// Text smaller than the window's, for axes and cells.
float small_text_size();
ImVec2 small_text_extent(const char* text);
void draw_small_text(ImDrawList& draw, ImVec2 at, ImU32 color, const char* text);
// The same colour with this share of its opacity.
ImU32 faded(ImU32 color, float share);
// Black or white, whichever is read better on the colour.
ImU32 readable_on(ImU32 color);

}  // namespace hearth
