// Where the roofline's lines and dots are: plain data, worked out of what was measured. Pure.
#pragma once

#include <string>
#include <vector>

#include "ui/data/roofline_data.h"

namespace hearth {

struct RooflinePlot {
  struct Point {
    double x = 0, y = 0;  // FLOP a byte, FLOP a second
  };
  struct Roof {
    std::string name;           // what bounds it
    std::vector<Point> points;  // up the slope, along the flat
  };
  struct Mark {
    size_t dot = 0;   // of the data
    size_t step = 0;  // of steps
    Point at;
    double time_share = 0;  // of its step
  };

  double x_min = 0.1, x_max = 10, y_min = 1e6, y_max = 1e9;  // for logarithmic axes
  std::vector<Roof> roofs;                                   // the highest first
  std::vector<std::string> steps;                            // that were measured, in their order
  std::vector<Mark> marks;
  // Parts that only move bytes, or of which nothing is known, have no place on the plot.
  std::vector<size_t> unplotted;
};

// Nothing measured: nothing but axes.
RooflinePlot make_roofline_plot(const RooflineData& data);

}  // namespace hearth
