#include "ui/draw/cells.h"

#include <algorithm>
#include <cmath>

#include "runtime/rounding.h"

namespace hearth {

CellGrid CellGrid::fit(size_t cells, ImVec2 size, float min_pitch, float max_pitch) {
  CellGrid grid{.cells = cells};
  const float width = std::max(size.x, 1.0f);
  min_pitch = std::max(std::round(min_pitch), 1.0f);
  max_pitch = std::max(std::round(max_pitch), min_pitch);
  grid.pitch = min_pitch;
  for (float pitch = max_pitch; pitch >= min_pitch; pitch -= 1) {
    const auto columns = static_cast<size_t>(width / pitch);
    if (columns == 0) continue;
    const size_t rows = divide_up(cells, columns);
    if (static_cast<float>(rows) * pitch > size.y) continue;
    grid.pitch = pitch;
    break;
  }
  grid.columns = std::max<size_t>(static_cast<size_t>(width / grid.pitch), 1);
  grid.rows = divide_up(cells, grid.columns);
  grid.gaps = grid.pitch >= 4;
  return grid;
}

size_t CellGrid::at(ImVec2 position) const {
  if (position.x < 0 || position.y < 0 || position.x >= width()) return cells;
  const size_t cell =
      static_cast<size_t>(position.y / pitch) * columns + static_cast<size_t>(position.x / pitch);
  return std::min(cell, cells);
}

std::pair<size_t, size_t> CellGrid::visible(float top, float bottom) const {
  const auto first = static_cast<size_t>(std::max(top, 0.0f) / pitch) * columns;
  const auto end = static_cast<size_t>(std::ceil(std::max(bottom, 0.0f) / pitch)) * columns;
  return {std::min(first, cells), std::min(end, cells)};
}

void CellPainter::add(size_t cell, ImU32 color) {
  const bool follows = cell == end_ && cell % grid_.columns != 0;
  if (color == color_ && follows) {
    ++end_;
    return;
  }
  flush();
  first_ = cell;
  end_ = cell + 1;
  color_ = color;
}

void CellPainter::flush() {
  if (end_ > first_ && color_ != 0) {
    const ImVec2 at = grid_.corner(first_);
    const ImVec2 from(corner_.x + at.x, corner_.y + at.y);
    draw_.AddRectFilled(
        from, {from.x + static_cast<float>(end_ - first_) * grid_.pitch, from.y + grid_.pitch},
        color_);
  }
  first_ = end_;
}

void draw_cell_gaps(const CellGrid& grid, ImDrawList& draw, ImVec2 corner, size_t first, size_t end,
                    ImU32 background) {
  if (!grid.gaps || end <= first) return;
  const float thick = grid.pitch >= 10 ? 2.0f : 1.0f;
  const size_t first_row = first / grid.columns, rows = divide_up(end, grid.columns);
  const float top = corner.y + static_cast<float>(first_row) * grid.pitch;
  const float bottom = corner.y + static_cast<float>(rows) * grid.pitch;
  for (size_t row = first_row + 1; row <= rows; ++row) {
    const float y = corner.y + static_cast<float>(row) * grid.pitch;
    draw.AddRectFilled({corner.x, y - thick}, {corner.x + grid.width(), y}, background);
  }
  for (size_t column = 1; column <= grid.columns; ++column) {
    const float x = corner.x + static_cast<float>(column) * grid.pitch;
    draw.AddRectFilled({x - thick, top}, {x, bottom}, background);
  }
}

}  // namespace hearth
