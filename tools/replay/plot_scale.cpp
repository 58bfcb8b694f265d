#include "tools/replay/plot_scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>

#include <fmt/format.h>

namespace hearth {
namespace {

// Exact for the powers that a double can hold, so that 3 * 0.1 is written as 0.3.
double times_power_of_ten(double number, int exponent) {
  return exponent >= 0 ? number * std::pow(10.0, exponent) : number / std::pow(10.0, -exponent);
}

// Ticks at `digits` times every power of ten, from the last one at or below `low` to the first one
// at or above `high`.
std::vector<double> decade_ticks(double low, double high, std::initializer_list<int> digits,
                                 int decades_per_tick) {
  constexpr double kRounding = 1e-9;
  const int first = static_cast<int>(std::floor(std::log10(low) + kRounding));
  std::vector<double> ticks;
  for (int exponent = first;; exponent += decades_per_tick)
    for (const int digit : digits) {
      const double tick = times_power_of_ten(digit, exponent);
      if (tick <= low * (1 + kRounding)) ticks.clear();
      ticks.push_back(tick);
      if (ticks.size() >= 2 && tick >= high * (1 - kRounding)) return ticks;
    }
}

}  // namespace

PlotScale PlotScale::linear(double low, double high, size_t most_ticks) {
  if (low == high) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
    if (low == high) high = 1;
  }
  constexpr double kRounding = 1e-9;
  for (int exponent = static_cast<int>(std::floor(std::log10((high - low) / 10)));; ++exponent)
    for (const int digit : {1, 2, 5}) {
      const double step = times_power_of_ten(digit, exponent);
      const auto first = static_cast<int64_t>(std::floor(low / step + kRounding));
      const auto last = static_cast<int64_t>(std::ceil(high / step - kRounding));
      const auto count = static_cast<size_t>(last - first + 1);
      if (count < 2 || count > most_ticks) continue;
      std::vector<double> ticks;
      for (int64_t i = first; i <= last; ++i)
        ticks.push_back(times_power_of_ten(static_cast<double>(i * digit), exponent));
      return {std::move(ticks), false};
    }
}

PlotScale PlotScale::logarithmic(double low, double high, size_t most_ticks) {
  for (const auto digits : {std::initializer_list<int>{1, 2, 5}, {1, 3}, {1}})
    if (std::vector<double> ticks = decade_ticks(low, high, digits, 1); ticks.size() <= most_ticks)
      return {std::move(ticks), true};
  for (int decades = 2;; ++decades)
    if (std::vector<double> ticks = decade_ticks(low, high, {1}, decades);
        ticks.size() <= most_ticks)
      return {std::move(ticks), true};
}

double PlotScale::place(double value) const {
  const double inside = std::clamp(value, low(), high());
  if (logarithmic_) return std::log(inside / low()) / std::log(high() / low());
  return (inside - low()) / (high() - low());
}

std::string plot_number(double value) {
  std::string text = fmt::format("{:.6g}", value);
  if (std::abs(value) < 1000 || text.find('e') != std::string::npos) return text;
  const size_t whole = std::min(text.find('.'), text.size());
  const size_t first = text.starts_with('-') ? 1 : 0;
  for (size_t i = whole; i > first + 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

TimeUnit time_unit(double low_seconds, double high_seconds) {
  constexpr double kSecond = 1, kMilli = 1e-3;
  const bool small_low = low_seconds > 0 && low_seconds < 0.01;
  if (high_seconds >= kSecond && !(small_low && high_seconds < 100)) return {"s", 1};
  if (high_seconds > kMilli) return {"ms", 1e3};
  return {"µs", 1e6};
}

}  // namespace hearth
