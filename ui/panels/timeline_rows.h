// The rows of the timeline panel: a request each, in a region that scrolls. Part of
// panel_timeline.cpp, which has what is above and below them.
#pragma once

#include <vector>

#include <imgui.h>

#include "ui/data/timeline_data.h"
#include "ui/data/timeline_window.h"
#include "ui/panel.h"

namespace hearth {

class TimelineRows {
 public:
  // In a child of this size whose columns begin at `left` from its edge. Dragging and the wheel
  // move the window.
  void draw(const PanelContext& context, const TimelineData& data, TimelineWindow& window,
            ImVec2 size, float left);

 private:
  struct RowArea {
    const PanelContext& context;
    const TimelineData& data;
    TimelineWindow& window;
    ImDrawList& draw;
    ImVec2 corner;  // of the first row, also where it is scrolled out of sight
    float left = 0, width = 0, row_height = 0;

    float x_of(uint64_t column) const {
      return window.x_of(static_cast<double>(column), corner.x + left);
    }
  };

  void scroll_to_live_rows(const TimelineData& data, const TimelineWindow& window, float height,
                           float room);
  void draw_row(const RowArea& area, const TimelineRow& row, size_t index);
  void draw_column_lines(const RowArea& area, float top, float bottom);
  void handle_mouse(const RowArea& area);

  std::vector<size_t> visible_;
  RequestId pressed_ = 0;
  bool scrolled_by_hand_ = false;  // by hand, since it follows
};

// Of the item that was drawn last, whose columns begin at `left` on the screen: dragging moves,
// Ctrl and the wheel zoom.
void pan_and_zoom(TimelineWindow& window, float left);

// Dashes where steps were missed.
void draw_missed_steps(const Theme& theme, ImDrawList& draw, const TimelineData& data,
                       const TimelineWindow& window, float left, float top, float bottom);

}  // namespace hearth
