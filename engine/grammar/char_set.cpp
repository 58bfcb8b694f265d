#include "engine/grammar/char_set.h"

#include <algorithm>

namespace hearth::grammar {

CharSet::CharSet(std::vector<CharRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CharRange& a, const CharRange& b) { return a.low < b.low; });
  for (const CharRange& range : ranges) {
    if (range.low > range.high) continue;
    if (!ranges_.empty() && range.low <= ranges_.back().high + 1)
      ranges_.back().high = std::max(ranges_.back().high, range.high);
    else
      ranges_.push_back(range);
  }
}

bool CharSet::contains(char32_t c) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), c,
                                      [](char32_t x, const CharRange& r) { return x < r.low; });
  return after != ranges_.begin() && c <= std::prev(after)->high;
}

CharSet CharSet::inverted() const {
  CharSet result;
  char32_t next = 0;
  for (const CharRange& range : ranges_) {
    if (range.low > next) result.ranges_.push_back({next, range.low - 1});
    next = range.high + 1;
  }
  if (next <= kLastCodePoint) result.ranges_.push_back({next, kLastCodePoint});
  return result;
}

CharSet CharSet::united(const CharSet& other) const {
  std::vector<CharRange> ranges = ranges_;
  ranges.insert(ranges.end(), other.ranges_.begin(), other.ranges_.end());
  return CharSet(std::move(ranges));
}

CharSet CharSet::ignoring_case() const {
  std::vector<CharRange> ranges = ranges_;
  for (const CharRange& range : ranges_) {
    const auto add = [&](char32_t first, char32_t last, int shift) {
      const char32_t low = std::max(range.low, first), high = std::min(range.high, last);
      if (low <= high)
        ranges.push_back({static_cast<char32_t>(static_cast<int>(low) + shift),
                          static_cast<char32_t>(static_cast<int>(high) + shift)});
    };
    add(U'a', U'z', -32);
    add(U'A', U'Z', 32);
  }
  return CharSet(std::move(ranges));
}

}  // namespace hearth::grammar
