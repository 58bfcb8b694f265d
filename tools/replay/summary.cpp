#include "tools/replay/summary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace hearth {

double percentile(std::span<const double> sorted, double q) {
  if (sorted.empty()) return 0;
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

Summary summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {.mean = sum / static_cast<double>(values.size()),
          .p50 = percentile(values, 0.5),
          .p90 = percentile(values, 0.9),
          .p99 = percentile(values, 0.99)};
}

}  // namespace hearth
