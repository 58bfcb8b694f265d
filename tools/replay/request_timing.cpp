#include "tools/replay/request_timing.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/replay/parse_number.h"

namespace hearth {

double RequestTiming::longest_gap() const {
  double longest = 0;
  for (size_t i = 1; i < token_times.size(); ++i)
    longest = std::max(longest, token_times[i] - token_times[i - 1]);
  return longest;
}

void RequestTiming::deliver_together(double time) {
  if (token_times.empty()) return;
  token_times.assign(token_times.size(), std::max(time, token_times.back()));
}

bool ServiceGoal::met_by(const RequestTiming& timing) const {
  return !timing.failed && !timing.token_times.empty() &&
         timing.time_to_first_token() <= time_to_first_token &&
         timing.longest_gap() <= time_between_tokens;
}

Result<ServiceGoal> parse_service_goal(std::string_view text) {
  ServiceGoal goal;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const size_t equals = entry.find('=');
    const std::string_view key = entry.substr(0, equals);
    double seconds = 0;
    if (equals != std::string_view::npos)
      seconds = parse_number<double>(entry.substr(equals + 1)).value_or(0);
    if ((key != "ttft" && key != "tbt") || !(seconds > 0))
      return Error{ErrorKind::kInvalid,
                   fmt::format("'{}' is not a goal such as ttft=1,tbt=0.1, in seconds", entry)};
    if (key == "ttft")
      goal.time_to_first_token = seconds;
    else
      goal.time_between_tokens = seconds;
  }
  return goal;
}

}  // namespace hearth
