#include "engine/decoding/speculation/row_costs.h"

#include <algorithm>
#include <bit>

namespace hearth {
namespace {

// The assumed cost of one more row until it is measured: as a share of the step's time, and, on a
// CPU, of the step's time per row.
constexpr double kUnknownRowPrice = 0.004, kUnknownCpuRowPrice = 0.5;
// How far one measurement can be from the estimate: a step may have had to record its commands.
constexpr double kMostChange = 1.5;
constexpr double kWeight = 0.125;  // of a new measurement
// Of the first measurements the smallest counts: what disturbs them makes them larger.
constexpr std::uint32_t kEarly = 4;

// The largest number of rows with this index.
std::uint32_t rows_of(std::size_t index) {
  if (index < 8) return static_cast<std::uint32_t>(index) + 1;
  const std::size_t octave = (index - 8) / 8, part = (index - 8) % 8;
  return static_cast<std::uint32_t>((9 + part) << octave);
}

}  // namespace

std::size_t RowCosts::size_index(std::uint32_t rows) {
  if (rows <= 8) return std::max(rows, 1u) - 1;
  const auto octave = static_cast<std::uint32_t>(std::bit_width(rows - 1)) - 4;  // of 9 to 16: 0
  return 8 + 8 * octave + ((rows - 1) >> octave) - 8;
}

void RowCosts::add(std::uint32_t rows, double seconds) {
  if (rows > kMostRows || !(seconds > 0)) return;
  ++steps_;
  Estimate& estimate = estimates_[size_index(rows)];
  const bool begins = !known(estimate);
  estimate.last = steps_;
  ++estimate.count;
  if (estimate.count == 1) return;  // its commands were recorded
  estimate.learnt = begins ? 1 : estimate.learnt + 1;
  if (begins)
    estimate.seconds = seconds;
  else if (estimate.learnt <= kEarly)
    estimate.seconds = std::min(estimate.seconds, seconds);
  else
    estimate.seconds += kWeight * (std::clamp(seconds, estimate.seconds / kMostChange,
                                              estimate.seconds * kMostChange) -
                                   estimate.seconds);
}

bool RowCosts::measured(std::uint32_t rows) const {
  return rows <= kMostRows && known(estimates_[size_index(rows)]);
}

std::optional<double> RowCosts::seconds(std::uint32_t rows) const {
  if (rows > kMostRows) return std::nullopt;
  const std::size_t index = size_index(rows);
  std::size_t below = index;
  while (below > 0 && !known(estimates_[below])) --below;
  if (!known(estimates_[below])) return std::nullopt;
  const double least = estimates_[below].seconds;
  if (below == index) return least;
  const double price = on_cpu_ ? kUnknownCpuRowPrice / rows_of(below) : kUnknownRowPrice;
  const double guess = least * (1 + price * (rows_of(index) - rows_of(below)));
  // A larger step that was faster than the guess says more.
  for (std::size_t above = index + 1; above < kSizes; ++above)
    if (known(estimates_[above]))
      return std::min(guess, std::max(least, estimates_[above].seconds));
  return guess;
}

}  // namespace hearth
