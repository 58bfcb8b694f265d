// How one run of equal timeline cells is drawn: in the Timeline panel and in comparisons.
#pragma once

#include <cstdint>
#include <vector>

#include <imgui.h>

#include "ui/data/timeline_data.h"
#include "ui/draw/legend.h"
#include "ui/theme.h"

namespace hearth {

// Where a run is drawn: the rectangle, and its columns for letters.
struct CellPlace {
  ImVec2 from, to;
  float first_x = 0;  // of the first column, even if it is left of `from`
  float pitch = 0;    // of columns; 0: no letters
  uint64_t columns = 0;
};
void draw_timeline_run(const Theme& theme, ImDrawList& draw, const TimelineCell& cell,
                       const CellPlace& place);

// What the cells mean; of the rare ones, those in `marks`.
std::vector<LegendEntry> timeline_legend(const Theme& theme, const TimelineData::Marks& marks);

}  // namespace hearth
