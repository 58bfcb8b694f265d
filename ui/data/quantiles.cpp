#include "ui/data/quantiles.h"

#include <algorithm>
#include <cmath>

namespace hearth {
namespace {

// The index of the quantile among `count` sorted values.
size_t rank_of(double q, size_t count) {
  const double rank = std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count) - 1e-9);
  return std::clamp<size_t>(static_cast<size_t>(std::max(rank, 1.0)), 1, count) - 1;
}

}  // namespace

Quantiles::Place Quantiles::place_of(double value) {
  constexpr size_t kCells = size_t{kDecades} * kBinsPerDecade * kCellsPerBin;
  if (!(value > kMinValue)) return {};
  const double cell = std::floor(std::log10(value / kMinValue) * kBinsPerDecade * kCellsPerBin);
  const size_t index = std::min(static_cast<size_t>(cell), kCells - 1);
  return {.bin = index / kCellsPerBin, .cell = index % kCellsPerBin};
}

void Quantiles::add(double value) {
  const Place place = place_of(value);
  Bin& bin = bins_[place.bin];
  if (bin.cells.empty()) bin.cells.resize(kCellsPerBin);
  Cell& cell = bin.cells[place.cell];
  if (cell.count() == 0) cell.least = cell.most = value;
  cell.least = std::min(cell.least, value);
  cell.most = std::max(cell.most, value);
  cell.values.push_back(value);
  ++bin.count;
  ++count_;
  sum_ += value;
}

void Quantiles::remove_oldest(double value) {
  const Place place = place_of(value);
  Bin& bin = bins_[place.bin];
  if (bin.cells.empty() || bin.cells[place.cell].count() == 0) return;
  Cell& cell = bin.cells[place.cell];
  ++cell.head;
  --bin.count;
  --count_;
  sum_ = count_ == 0 ? 0 : sum_ - value;
  if (cell.head < 64 || cell.head < cell.values.size() / 2) return;
  cell.values.erase(cell.values.begin(), cell.values.begin() + static_cast<ptrdiff_t>(cell.head));
  cell.head = 0;
}

void Quantiles::clear() {
  for (Bin& bin : bins_) bin = {};
  count_ = 0;
  sum_ = 0;
}

double Quantiles::value_at(const Cell& cell, size_t rank) {
  if (cell.least == cell.most) return cell.least;
  std::vector<double> values(cell.values.begin() + static_cast<ptrdiff_t>(cell.head),
                             cell.values.end());
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(rank), values.end());
  return values[rank];
}

double Quantiles::quantile(double q) const {
  if (count_ == 0) return 0;
  size_t rank = rank_of(q, count_);
  for (const Bin& bin : bins_) {
    if (rank >= bin.count) {
      rank -= bin.count;
      continue;
    }
    for (const Cell& cell : bin.cells) {
      if (rank < cell.count()) return value_at(cell, rank);
      rank -= cell.count();
    }
  }
  return 0;
}

std::vector<Quantiles::Bar> Quantiles::histogram(int per_decade) const {
  const auto together = static_cast<size_t>(kBinsPerDecade / std::clamp(per_decade, 1, 256));
  std::vector<Bar> bars;
  size_t last = 0;  // end of the last non-empty bar
  for (size_t first = 0; first < bins_.size(); first += together) {
    Bar bar;
    for (size_t i = first; i < std::min(first + together, bins_.size()); ++i)
      bar.count += bins_[i].count;
    if (bar.count == 0 && bars.empty()) continue;
    bar.from = kMinValue * std::pow(10, static_cast<double>(first) / kBinsPerDecade);
    bar.to = kMinValue * std::pow(10, static_cast<double>(first + together) / kBinsPerDecade);
    bars.push_back(bar);
    if (bar.count > 0) last = bars.size();
  }
  bars.resize(last);
  return bars;
}

double quantile_of(std::span<double> values, double q) {
  if (values.empty()) return 0;
  const size_t rank = rank_of(q, values.size());
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(rank), values.end());
  return values[rank];
}

}  // namespace hearth
