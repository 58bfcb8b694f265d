// The geometry of the roofline plot, computed from the measurements. Plain data, pure function.
#pragma once

#include <string>
#include <vector>

#include "ui/data/roofline_data.h"

namespace hearth {

struct RooflinePlot {
  struct Point {
    double x = 0, y = 0;  // FLOP per byte, FLOP per second
  };
  struct Roof {
    std::string name;           // the ceiling's name
    std::vector<Point> points;  // the bandwidth slope, then the flat compute ceiling
  };
  struct Mark {
    size_t dot = 0;   // index into the data's dots
    size_t step = 0;  // index into steps
    Point at;
    double time_share = 0;  // fraction of its step's time
  };

  double x_min = 0.1, x_max = 10, y_min = 1e6, y_max = 1e9;  // for logarithmic axes
  std::vector<Roof> roofs;                                   // highest first
  std::vector<std::string> steps;                            // measured steps, in order
  std::vector<Mark> marks;
  // Indices of dots without arithmetic or without known cost, which cannot be plotted.
  std::vector<size_t> unplotted;
};

// Without measurements the plot has only axes.
RooflinePlot make_roofline_plot(const RooflineData& data);

}  // namespace hearth
