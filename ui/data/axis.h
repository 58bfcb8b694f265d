// Numbers as people read them, and where an axis has its marks: pure functions, any thread.
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

// Three significant digits with the prefix that fits: "1.25 ms", "3.40 GiB", "12.3 k tokens/s".
// Whole plain numbers and tokens below 10,000 are written out: "4096".
std::string format_value(double value, Unit unit);

struct AxisTick {
  double value = 0;
  std::string label;  // empty: a mark between labelled ones
};

// At most about `most` labelled ticks from min to max, at 1, 2 or 5 times a power of ten of the
// unit that fits max; on a logarithmic axis at powers of ten, with marks between, which have labels
// too where there is room. Only the last label of a linear axis names the unit. Empty unless min <
// max, and 0 < min if logarithmic.
std::vector<AxisTick> axis_ticks(double min, double max, bool logarithmic, Unit unit, int most);

// The end of an axis that shows `value`: a round number not far above it, so that the axis stands
// still while values change a little. At least `least`.
double axis_end(double value, double least);

}  // namespace hearth
