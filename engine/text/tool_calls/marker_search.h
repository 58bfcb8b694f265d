// Finds the first of several fixed texts in text that arrives byte by byte, and holds back bytes
// that may be the beginning of one. For one reply and one thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

class MarkerSearch {
 public:
  // Empty markers are ignored. The markers' bytes must outlive the search, as literals do. If one
  // marker begins with another, the shorter one is found.
  explicit MarkerSearch(std::vector<std::string_view> markers) : markers_(std::move(markers)) {}

  // Takes a byte, and appends to `text` the bytes that are certainly not part of a marker. Returns
  // the index of the marker that is complete with this byte.
  std::optional<std::size_t> push(char byte, std::string& text);
  // Returns what was held back.
  std::string finish() { return std::exchange(held_, {}); }

 private:
  std::vector<std::string_view> markers_;
  std::string held_;
};

}  // namespace hearth
