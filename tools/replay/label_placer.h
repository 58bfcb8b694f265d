// Finds places for the labels of a plot's points, so that they cover neither points nor each other.
// Pure.
#pragma once

#include <algorithm>
#include <vector>

#include "tools/replay/svg_writer.h"

namespace hearth {

struct PlotBox {
  double left = 0, top = 0, right = 0, bottom = 0;

  bool overlaps(const PlotBox& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool contains(const PlotBox& other) const {
    return left <= other.left && top <= other.top && other.right <= right && other.bottom <= bottom;
  }
  SvgPoint centre() const { return {(left + right) / 2, (top + bottom) / 2}; }
  // The point of the box that is nearest to `point`.
  SvgPoint nearest(SvgPoint point) const {
    return {std::clamp(point.x, left, right), std::clamp(point.y, top, bottom)};
  }
  // The box of this size with its middle at `centre`.
  static PlotBox around(SvgPoint centre, double width, double height);
};

class LabelPlacer {
 public:
  // Labels stay inside `area`.
  explicit LabelPlacer(PlotBox area) : area_(area) {}

  // Keeps labels away from a point or a text.
  void block(const PlotBox& box) { taken_.push_back(box); }
  // Keeps labels away from a line, unless that would push them far from their point.
  void avoid_line(SvgPoint from, SvgPoint to);

  struct Label {
    PlotBox box;
    bool far = false;  // a line should lead to it
  };
  // A free place for a label of this size, as near to the point as there is one: above it if
  // possible. If there is none, above it and over something else. `radius` is the size of what is
  // drawn around the point.
  Label place(SvgPoint point, double radius, double width, double height);

 private:
  bool is_free(const PlotBox& box) const;

  PlotBox area_;
  std::vector<PlotBox> taken_;
  std::vector<PlotBox> lines_;  // boxes along them
};

}  // namespace hearth
