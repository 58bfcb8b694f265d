// The axes of a plot: where a value lies, and the round numbers to label the axis with. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hearth {

class PlotScale {
 public:
  // Covers `low` to `high`, widened to round ends; at most `most_ticks` ticks, all of them
  // multiples of 1, 2 or 5 times a power of ten. Equal ends are widened down to 0. REQUIRES: low <=
  // high, both finite; most_ticks >= 3.
  static PlotScale linear(double low, double high, size_t most_ticks);
  // The same with equal distances for equal factors, and ticks at 1, 2 and 5 times powers of ten,
  // or fewer of them. REQUIRES: 0 < low.
  static PlotScale logarithmic(double low, double high, size_t most_ticks);

  // 0 at the lowest tick and 1 at the highest; values beyond them are moved to the nearer one.
  double place(double value) const;
  const std::vector<double>& ticks() const { return ticks_; }  // ascending, at least two
  double low() const { return ticks_.front(); }
  double high() const { return ticks_.back(); }
  bool is_logarithmic() const { return logarithmic_; }

 private:
  PlotScale(std::vector<double> ticks, bool logarithmic)
      : ticks_(std::move(ticks)), logarithmic_(logarithmic) {}

  std::vector<double> ticks_;
  bool logarithmic_ = false;
};

// "0.25", "12,000".
std::string plot_number(double value);

// The unit that times on an axis are written in.
struct TimeUnit {
  std::string name;       // "ms"
  double per_second = 1;  // 1000
};
// Picks one in which neither end of the axis has many zeros.
TimeUnit time_unit(double low_seconds, double high_seconds);

}  // namespace hearth
