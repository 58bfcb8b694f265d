// Means and percentiles. Pure.
#pragma once

#include <span>
#include <vector>

namespace hearth {

// The value below which a share `q` (0 to 1) of the values lies, on the line between the two that
// are nearest: of 1, 2, 3, 4 the median is 2.5. 0 without values. REQUIRES: ascending order.
double percentile(std::span<const double> sorted, double q);

struct Summary {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};

// Of values in any order; all 0 without values.
Summary summarize(std::vector<double> values);

}  // namespace hearth
