#include "engine/text/tool_calls/marker_search.h"

namespace hearth {

std::optional<std::size_t> MarkerSearch::push(char byte, std::string& text) {
  held_ += byte;
  // Longer beginnings first: the leftmost marker wins.
  for (std::size_t at = 0; at < held_.size(); ++at) {
    const std::string_view rest = std::string_view(held_).substr(at);
    bool begins = false;
    for (std::size_t i = 0; i < markers_.size(); ++i) {
      if (markers_[i].empty() || !markers_[i].starts_with(rest)) continue;
      begins = true;
      if (markers_[i].size() != rest.size()) continue;
      text.append(held_, 0, at);
      held_.clear();
      return i;
    }
    if (!begins) continue;
    text.append(held_, 0, at);
    held_.erase(0, at);
    return std::nullopt;
  }
  text += held_;
  held_.clear();
  return std::nullopt;
}

}  // namespace hearth
