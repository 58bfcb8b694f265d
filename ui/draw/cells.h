// A grid of equal cells that fills a rectangle, row by row: how large they may be, which one is
// where, and drawing them cheaply. Neighbours of one colour are drawn as one rectangle with lines
// over it, so that the cost follows the changes of colour, not the cells.
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
  float pitch = 1;    // from one cell to the next, in pixels
  bool gaps = false;  // whether there is room for lines between them

  // The largest cells with which all fit into the size, from least to most pixels wide; where even
  // the least do not fit, rows go on below: height() is larger than the size's.
  static CellGrid fit(size_t cells, ImVec2 size, float least, float most);

  float width() const { return static_cast<float>(columns) * pitch; }
  float height() const { return static_cast<float>(rows) * pitch; }
  ImVec2 corner(size_t cell) const {
    return {static_cast<float>(cell % columns) * pitch, static_cast<float>(cell / columns) * pitch};
  }
  // The cell at a place relative to the grid's corner; `cells` if there is none.
  size_t at(ImVec2 place) const;
  // The first cell and the one behind the last of the rows that are seen between these heights.
  std::pair<size_t, size_t> visible(float top, float bottom) const;
};

// Draws cells in ascending order. Colour 0 is left out.
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

// The lines between cells [first, end), in the colour behind them, over what was painted. Does
// nothing where the cells are too small for them.
void draw_cell_gaps(const CellGrid& grid, ImDrawList& draw, ImVec2 corner, size_t first, size_t end,
                    ImU32 background);

}  // namespace hearth
