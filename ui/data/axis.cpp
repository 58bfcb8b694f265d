#include "ui/data/axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace hearth {
namespace {

struct Prefix {
  double size;
  const char* name;
};

constexpr std::array<Prefix, 5> kDecimal = {
    {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}};
constexpr std::array<Prefix, 4> kSeconds = {{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
constexpr std::array<Prefix, 5> kBinary = {
    {{1099511627776.0, "Ti"}, {1073741824.0, "Gi"}, {1048576.0, "Mi"}, {1024.0, "Ki"}, {1, ""}}};

struct Scale {
  double size = 1;
  std::string suffix;  // "ms", "k tokens/s"
};

const char* unit_name(Unit unit) {
  switch (unit) {
    case Unit::kPlain:
    case Unit::kSeconds:
    case Unit::kShare:
      return "";
    case Unit::kTokens:
      return "tokens";
    case Unit::kTokensPerSecond:
      return "tokens/s";
    case Unit::kBytes:
      return "B";
    case Unit::kBytesPerSecond:
      return "B/s";
    case Unit::kFlopsPerSecond:
      return "FLOP/s";
    case Unit::kFlopsPerByte:
      return "FLOP/B";
  }
  return "";
}

const Prefix& fitting(std::span<const Prefix> prefixes, double value) {
  // A value that three digits would round up to the next prefix uses that prefix: 999.7 is 1 k.
  for (const Prefix& prefix : prefixes)
    if (value >= 0.9995 * prefix.size) return prefix;
  return prefixes.back();
}

Scale scale_for(double value, Unit unit) {
  value = std::abs(value);
  if (unit == Unit::kShare) return {0.01, "%"};
  if (unit == Unit::kSeconds) {
    if (value == 0) return {1, "s"};
    const Prefix& prefix = fitting(kSeconds, value);
    return {prefix.size, prefix.name};
  }
  const bool bytes = unit == Unit::kBytes || unit == Unit::kBytesPerSecond;
  const Prefix& prefix = bytes ? fitting(kBinary, value) : fitting(kDecimal, value);
  const std::string name = unit_name(unit);
  // "GiB" is one word, "k tokens/s" is two.
  const bool one_word = bytes || unit == Unit::kFlopsPerSecond;
  const bool space = !one_word && prefix.name[0] != 0 && !name.empty();
  return {prefix.size, prefix.name + std::string(space ? " " : "") + name};
}

std::string three_digits(double value) {
  const double size = std::abs(value);
  if (value == 0) return "0";
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string with_suffix(std::string number, const std::string& suffix) {
  return suffix.empty() ? number : number + " " + suffix;
}

// The smallest 1, 2 or 5 times a power of ten that is at least `value`.
double nice_above(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0})
    if (step * power >= value * (1 - 1e-9)) return step * power;
  return 10 * power;
}

std::vector<AxisTick> linear_ticks(double min, double max, Unit unit, int max_labels) {
  Scale scale = scale_for(std::max(std::abs(min), std::abs(max)), unit);
  const double span = (max - min) / scale.size;
  double step = nice_above(span / std::max(max_labels, 1));
  // A single label would not show the scale. A round number is at most 2.5 times the one before it.
  if (step > span * (1 + 1e-9)) step = nice_above(span / 2.5);
  // Fractions of a token make no sense.
  const bool whole = unit == Unit::kTokens || unit == Unit::kPlain;
  if (whole && scale.size == 1) step = std::max(step, 1.0);
  const double tiny = step * 1e-6;
  std::vector<AxisTick> ticks;
  for (double at = std::ceil(min / scale.size / step - 1e-6) * step; at <= max / scale.size + tiny;
       at += step)
    ticks.push_back({at * scale.size, fmt::format("{:.6g}", std::abs(at) < tiny ? 0.0 : at)});
  // "2 k" must not be read as 2.
  if (unit == Unit::kPlain)
    for (AxisTick& tick : ticks)
      if (tick.value != 0 && &tick != &ticks.back())
        tick.label = with_suffix(tick.label, scale.suffix);
  if (!ticks.empty()) ticks.back().label = with_suffix(ticks.back().label, scale.suffix);
  return ticks;
}

// Which ticks of a logarithmic axis have a label. Powers of ten come first, as many as fit; then 2
// and 5 times a power of ten where they are far enough from every other label.
class LogLabels {
 public:
  LogLabels(double min, double max, int max_labels)
      : min_(min), decades_(std::log10(max / min)), most_(std::max(max_labels, 1)) {}

  void add_powers(int first, int last) {
    const int span = last - first;
    // Labels that are next to each other need this part of the axis between them.
    const auto apart = static_cast<int>(std::ceil(gap() * decades_));
    const int every = std::max({1, (span + most_) / most_, apart});
    // As many labels on the left as on the right: a single one is best in the middle.
    int best = first;
    for (int from = first; from <= std::min(first + every - 1, last); ++from)
      if (off_centre(from, last, every) < off_centre(best, last, every)) best = from;
    for (int power = best; power <= last; power += every) at_.push_back(std::pow(10, power));
  }

  void add_if_free(double value) {
    const bool crowded = std::ranges::any_of(
        at_, [&](double other) { return std::abs(std::log10(value / other)) < gap() * decades_; });
    if (!crowded) at_.push_back(value);
  }

  bool empty() const { return at_.empty(); }
  bool has(double value) const { return std::ranges::find(at_, value) != at_.end(); }
  double middle() const { return min_ * std::pow(10, decades_ / 2); }

 private:
  // How far the middle of these powers is from the axis', in decades.
  double off_centre(int from, int last, int every) const {
    const int end = from + (last - from) / every * every;
    return std::abs((from + end) / 2.0 - std::log10(middle())) - 1e-9 * (end - from);
  }

  // As a share of the axis. Labels are seldom as wide as they may be.
  double gap() const { return 0.8 / most_; }

  double min_, decades_;
  int most_;
  std::vector<double> at_;
};

std::vector<AxisTick> log_ticks(double min, double max, Unit unit, int max_labels) {
  constexpr double kTiny = 1e-9;
  const int first = static_cast<int>(std::floor(std::log10(min) + kTiny));
  const int last = static_cast<int>(std::ceil(std::log10(max) - kTiny));
  std::vector<AxisTick> ticks;
  for (int power = first; power <= last; ++power)
    for (int digit = 1; digit < 10; ++digit) {
      const double value = digit * std::pow(10, power);
      if (value < min * (1 - kTiny) || value > max * (1 + kTiny)) continue;
      ticks.push_back({value, {}});
    }
  LogLabels labels(min, max, max_labels);
  labels.add_powers(static_cast<int>(std::ceil(std::log10(min) - kTiny)),
                    static_cast<int>(std::floor(std::log10(max) + kTiny)));
  for (const int digit : {2, 5})
    for (int power = first; power <= last; ++power) {
      const double value = digit * std::pow(10, power);
      if (std::ranges::find(ticks, value, &AxisTick::value) != ticks.end())
        labels.add_if_free(value);
    }
  // However short the axis is, a number says how large things are.
  if (labels.empty() && !ticks.empty())
    labels.add_if_free(std::ranges::min_element(ticks, {}, [&](const AxisTick& tick) {
                         return std::abs(std::log(tick.value / labels.middle()));
                       })->value);
  for (AxisTick& tick : ticks)
    if (labels.has(tick.value)) {
      const Scale scale = scale_for(tick.value, unit);
      tick.label = with_suffix(fmt::format("{:.6g}", tick.value / scale.size), scale.suffix);
    }
  return ticks;
}

}  // namespace

std::string format_value(double value, Unit unit) {
  if (!std::isfinite(value)) return "-";
  const bool whole = unit == Unit::kPlain || unit == Unit::kTokens;
  if (whole && std::abs(value) < 10000 && value == std::floor(value))
    return with_suffix(fmt::format("{:.0f}", value), unit_name(unit));
  if (unit == Unit::kBytes && std::abs(value) < 1024) return fmt::format("{:.0f} B", value);
  const Scale scale = scale_for(value, unit);
  return with_suffix(three_digits(value / scale.size), scale.suffix);
}

std::vector<AxisTick> axis_ticks(double min, double max, bool logarithmic, Unit unit,
                                 int max_labels) {
  if (!(min < max) || !std::isfinite(min) || !std::isfinite(max)) return {};
  if (!logarithmic) return linear_ticks(min, max, unit, max_labels);
  return min > 0 ? log_ticks(min, max, unit, max_labels) : std::vector<AxisTick>();
}

double axis_end(double value, double minimum) {
  value = std::max(value, minimum);
  if (!(value > 0) || !std::isfinite(value)) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0})
    if (step * power >= value * (1 - 1e-9)) return step * power;
  return 10 * power;
}

}  // namespace hearth
