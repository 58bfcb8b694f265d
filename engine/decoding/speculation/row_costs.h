// What a step costs, by its number of rows: running estimates from the steps that were run anyway.
// Rows are grouped as steps are recorded, in eight sizes per power of two, because kernels work in
// tiles and the time jumps at their edges. Pure: the caller measures.
//
// A size that has not been run is estimated to cost hardly more than the next smaller one, so that
// whoever chooses by cost tries it once and then knows. On a CPU that would be wrong by far, and
// trying a large size would take as long as many small steps; there, each row is estimated to cost
// half as much as the rows below it do on average. An estimate is forgotten if the size is not
// run for long, and sooner the fewer steps it is based on: the first steps of a size may be slow,
// and whoever chooses by cost would never come back to it. Not thread-safe; never allocates.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hearth {

class RowCosts {
 public:
  static constexpr std::uint32_t kMostRows = 4096;  // larger steps are not counted

  explicit RowCosts(bool on_cpu = false) : on_cpu_(on_cpu) {}

  // A step of `rows` rows took this long.
  void add(std::uint32_t rows, double seconds);
  // A step was run that is not counted here; estimates grow older all the same.
  void pass() { ++steps_; }
  // The estimate for a step of `rows` rows; empty if nothing was measured at this size or below.
  std::optional<double> seconds(std::uint32_t rows) const;
  // Whether a step of this size was measured.
  bool measured(std::uint32_t rows) const;

 private:
  // Steps for which an estimate is kept: this many for each step that it is based on, up to the
  // second.
  static constexpr std::uint64_t kTrust = 64, kLifetime = 4096;
  static constexpr std::size_t kSizes = 8 * 10 + 1;

  struct Estimate {
    double seconds = 0;
    std::uint32_t count = 0;   // steps seen; the first is not counted
    std::uint32_t learnt = 0;  // of these, since the estimate was last forgotten
    std::uint64_t last = 0;    // in steps
  };

  static std::size_t size_index(std::uint32_t rows);
  bool known(const Estimate& estimate) const {
    return estimate.count > 1 &&
           steps_ - estimate.last < std::min(kLifetime, kTrust * (estimate.count - 1));
  }

  bool on_cpu_;
  std::array<Estimate, kSizes> estimates_{};
  std::uint64_t steps_ = 0;
};

}  // namespace hearth
