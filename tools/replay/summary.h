// Means and percentiles. Pure.
#pragma once

#include <span>
#include <vector>

namespace hearth {

// The value below which the share `q` (0 to 1) of the values lies, interpolated between neighbours:
// the median of 1, 2, 3, 4 is 2.5. 0 if there are no values. REQUIRES: ascending order.
double percentile(std::span<const double> sorted, double q);

struct Summary {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};

// Values may be in any order. All 0 if there are none.
Summary summarize(std::vector<double> values);

}  // namespace hearth
