// Sets of Unicode code points as sorted, disjoint ranges. Plain values.
#pragma once

#include <cstdint>
#include <vector>

namespace hearth::grammar {

inline constexpr char32_t kLastCodePoint = 0x10FFFF;

struct CharRange {
  char32_t low = 0, high = 0;  // both inclusive
  bool operator==(const CharRange&) const = default;
};

class CharSet {
 public:
  CharSet() = default;
  // Any ranges, in any order; overlapping and adjacent ones are joined.
  explicit CharSet(std::vector<CharRange> ranges);
  static CharSet all() { return CharSet({{0, kLastCodePoint}}); }
  static CharSet one(char32_t c) { return CharSet({{c, c}}); }

  const std::vector<CharRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool contains(char32_t c) const;
  CharSet inverted() const;
  CharSet united(const CharSet& other) const;
  // Adds the other case of ASCII letters.
  CharSet ignoring_case() const;
  bool operator==(const CharSet&) const = default;

 private:
  std::vector<CharRange> ranges_;
};

}  // namespace hearth::grammar
