// Exact quantiles and histograms of values that come and go, oldest first, without sorting all of
// them: values lie in narrow logarithmic bins, and only the bin that holds the quantile is looked
// into. Of one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

class Quantiles {
 public:
  static constexpr int kDecades = 9;  // from kLeast on; what lies outside is in the first or last
  static constexpr int kBinsPerDecade = 256;
  static constexpr double kLeast = 1e-7;

  Quantiles() : bins_(kDecades * kBinsPerDecade) {}

  void add(double value);
  // Takes out a value. REQUIRES: values are taken out in the order in which they were added.
  void remove_oldest(double value);
  void clear();

  size_t count() const { return count_; }
  double sum() const { return sum_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  // The least value that at least the share q of all values does not exceed (nearest rank); 0
  // without values.
  double quantile(double q) const;

  struct Bar {
    double from = 0, to = 0;
    uint64_t count = 0;
  };
  // Bars of equal width on a logarithmic axis, `per_decade` of them (a divisor of kBinsPerDecade),
  // from the first to the last that is not empty.
  std::vector<Bar> histogram(int per_decade) const;

 private:
  // Oldest first; the first `head` are gone.
  struct Bin {
    std::vector<double> values;
    size_t head = 0;
    size_t count() const { return values.size() - head; }
  };
  static size_t bin_of(double value);

  std::vector<Bin> bins_;
  size_t count_ = 0;
  double sum_ = 0;
};

// The same of a plain list, which is put into another order.
double quantile_of(std::span<double> values, double q);

}  // namespace hearth
