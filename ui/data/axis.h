// Formats numbers for people and places the ticks of an axis. Pure functions, callable from any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth {

enum class Unit : uint8_t {
  kPlain,  // "12.3 k"
  kSeconds,
  kShare,  // 0.25 is "25 %"
  kTokens,
  kTokensPerSecond,
  kBytes,  // in powers of 1024
  kBytesPerSecond,
  kFlopsPerSecond,
  kFlopsPerByte,
};

// Three significant digits with a suitable prefix: "1.25 ms", "3.40 GiB", "12.3 k tokens/s".
// Whole plain numbers and tokens below 10,000 are written out: "4096".
std::string format_value(double value, Unit unit);

struct AxisTick {
  double value = 0;
  std::string label;  // empty: a minor tick
};

// Ticks from min to max, with about `max_labels` labels at most. Linear axes have ticks at 1, 2 or
// 5 times a power of ten of the unit that suits max, and only the last label names the unit.
// Logarithmic axes have ticks at powers of ten and minor ticks between them, which are labelled too
// if there is room. Returns nothing unless min < max, and 0 < min if logarithmic.
std::vector<AxisTick> axis_ticks(double min, double max, bool logarithmic, Unit unit,
                                 int max_labels);

// A round number not far above `value` and at least `minimum`, to end an axis at: small changes of
// the value leave the axis as it is.
double axis_end(double value, double minimum);

}  // namespace hearth
