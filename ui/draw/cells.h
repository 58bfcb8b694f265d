// A grid of equal cells that fills a rectangle row by row: choosing the cell size, finding the cell
// at a position, and drawing. Adjacent cells of the same colour are drawn as one rectangle with gap
// lines over it, so the cost depends on the number of colour changes, not of cells.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <imgui.h>

#include "ui/theme.h"

namespace hearth {

struct CellGrid {
  size_t cells = 0;
  size_t columns = 1, rows = 0;
  float pitch = 1;    // distance between cells, in pixels
  bool gaps = false;  // cells are large enough for lines between them

  // The largest cells, between min_pitch and max_pitch pixels, with which all fit into `size`. If
  // even the smallest do not fit, height() exceeds size.y.
  static CellGrid fit(size_t cells, ImVec2 size, float min_pitch, float max_pitch);

  float width() const { return static_cast<float>(columns) * pitch; }
  float height() const { return static_cast<float>(rows) * pitch; }
  ImVec2 corner(size_t cell) const {
    return {static_cast<float>(cell % columns) * pitch, static_cast<float>(cell / columns) * pitch};
  }
  // The cell at a position relative to the grid's corner; `cells` if there is none.
  size_t at(ImVec2 position) const;
  // The range [first, end) of cells in the rows visible between these heights.
  std::pair<size_t, size_t> visible(float top, float bottom) const;
};

// Draws cells. REQUIRES: they are added in ascending order. Colour 0 draws nothing.
class CellPainter {
 public:
  CellPainter(const CellGrid& grid, ImDrawList& draw, ImVec2 corner)
      : grid_(grid), draw_(draw), corner_(corner) {}
  ~CellPainter() { flush(); }
  CellPainter(const CellPainter&) = delete;
  CellPainter& operator=(const CellPainter&) = delete;

  void add(size_t cell, ImU32 color);
  void flush();

 private:
  const CellGrid& grid_;
  ImDrawList& draw_;
  ImVec2 corner_;
  size_t first_ = 0, end_ = 0;
  ImU32 color_ = 0;
};

// Draws the lines between cells [first, end) in the background's colour, over the painted cells.
// Does nothing if the cells are too small.
void draw_cell_gaps(const CellGrid& grid, ImDrawList& draw, ImVec2 corner, size_t first, size_t end,
                    ImU32 background);

}  // namespace hearth
