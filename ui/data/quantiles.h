// Exact quantiles and histograms over a sliding window, without sorting everything: values lie in
// narrow logarithmic bins, each divided again, and only the cell that contains the quantile is
// searched. A steady engine's values are nearly equal, so that cells of 0.06 % keep it short. Not
// thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

class Quantiles {
 public:
  // From kMinValue up. Values outside go to the first or last bin.
  static constexpr int kDecades = 9;
  static constexpr int kBinsPerDecade = 256;
  static constexpr double kMinValue = 1e-7;

  static constexpr int kCellsPerBin = 16;

  Quantiles() : bins_(kDecades * kBinsPerDecade) {}

  void add(double value);
  // REQUIRES: values are removed in the order in which they were added.
  void remove_oldest(double value);
  void clear();

  size_t count() const { return count_; }
  double sum() const { return sum_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  // The smallest value such that at least the fraction q of all values are not above it (nearest
  // rank); 0 if there are no values.
  double quantile(double q) const;

  struct Bar {
    double from = 0, to = 0;
    uint64_t count = 0;
  };
  // `per_decade` bars of equal width on a logarithmic axis (a divisor of kBinsPerDecade), from the
  // first to the last non-empty one.
  std::vector<Bar> histogram(int per_decade) const;

 private:
  // Oldest first; the first `head` values have been removed.
  struct Cell {
    std::vector<double> values;
    size_t head = 0;
    double least = 0, most = 0;  // of all values since the cell was empty
    size_t count() const { return values.size() - head; }
  };
  struct Bin {
    size_t count = 0;
    std::vector<Cell> cells;  // none until it has a value
  };
  struct Place {
    size_t bin = 0, cell = 0;
  };
  static Place place_of(double value);
  static double value_at(const Cell& cell, size_t rank);

  std::vector<Bin> bins_;
  size_t count_ = 0;
  double sum_ = 0;
};

// The quantile of a list, which is reordered.
double quantile_of(std::span<double> values, double q);

}  // namespace hearth
