#include "engine/text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace hearth {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  std::erase(strings_, std::string());
}

std::string StopStrings::push(std::string_view piece) {
  if (found_) return {};
  if (strings_.empty()) return std::string(piece);
  held_ += piece;

  size_t first = std::string::npos;
  for (const std::string& string : strings_)
    if (const size_t place = held_.find(string); place < first) {
      first = place;
      match_ = string;
    }
  if (first != std::string::npos) {
    found_ = true;
    return held_.substr(0, first);
  }

  // Hold back the longest suffix of the text that is a prefix of a stop string.
  size_t keep = 0;
  for (const std::string& string : strings_)
    for (size_t length = std::min(string.size() - 1, held_.size()); length > keep; --length)
      if (held_.ends_with(std::string_view(string).substr(0, length))) {
        keep = length;
        break;
      }
  std::string certain = held_.substr(0, held_.size() - keep);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopStrings::finish() { return found_ ? std::string() : std::exchange(held_, {}); }

}  // namespace hearth
