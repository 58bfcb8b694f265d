#include "tools/http/event_parser.h"

#include <utility>

namespace hearth {

Status EventParser::push(std::string_view bytes, std::vector<ServerEvent>& events) {
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    line_ += bytes.substr(0, newline);
    if (line_.size() + event_.data.size() > kMaxEventBytes)
      return invalid("the server sent an event of more than 4 MiB");
    if (newline == std::string_view::npos) return {};
    bytes.remove_prefix(newline + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    take_line(line_, events);
    line_.clear();
  }
  return {};
}

void EventParser::take_line(std::string_view line, std::vector<ServerEvent>& events) {
  if (line.empty()) {
    if (has_data_) events.push_back(std::move(event_));
    event_ = {};
    has_data_ = false;
    return;
  }
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value =
      colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") event_.name = value;
  if (field != "data") return;
  if (has_data_) event_.data += '\n';
  event_.data += value;
  has_data_ = true;
}

}  // namespace hearth
