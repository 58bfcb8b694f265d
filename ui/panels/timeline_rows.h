// The rows of the timeline panel, one per request, in a scrolling area. panel_timeline.cpp draws
// what is above and below them.
#pragma once

#include <vector>

#include <imgui.h>

#include "ui/data/timeline_data.h"
#include "ui/data/timeline_window.h"
#include "ui/panel.h"

namespace hearth {

class TimelineRows {
 public:
  // Draws a child window of this size whose columns start at `left`. Dragging and the mouse wheel
  // move and zoom the timeline window.
  void draw(const PanelContext& context, const TimelineData& data, TimelineWindow& window,
            ImVec2 size, float left);

 private:
  struct RowArea {
    const PanelContext& context;
    const TimelineData& data;
    TimelineWindow& window;
    ImDrawList& draw;
    ImVec2 corner;  // of the first row, even if it is scrolled out of view
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
  bool scrolled_by_hand_ = false;  // by the user, since following started
};

// Handles the mouse over the last item, whose columns start at `left` on the screen: dragging
// moves, Ctrl+wheel zooms.
void pan_and_zoom(TimelineWindow& window, float left);

// Draws dashed lines where steps were missed, and a line where the policy changed.
void draw_missed_steps(const Theme& theme, ImDrawList& draw, const TimelineData& data,
                       const TimelineWindow& window, float left, float top, float bottom);

}  // namespace hearth
