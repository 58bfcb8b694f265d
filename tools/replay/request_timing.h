// When a request's tokens reached the client, and whether that met the user's goal. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace hearth {

struct RequestTiming {
  double arrival = 0;               // all in seconds on one clock
  std::vector<double> token_times;  // ascending
  bool failed = false;              // it ended with an error
  bool refused = false;             // the queue was full or too slow

  // REQUIRES: there is a token.
  double time_to_first_token() const { return token_times.front() - arrival; }
  // Mean time per token after the first. REQUIRES: there are two tokens.
  double time_per_output_token() const {
    return (token_times.back() - token_times.front()) / static_cast<double>(token_times.size() - 1);
  }
  // REQUIRES: there is a token.
  double end_to_end() const { return token_times.back() - arrival; }
  // The longest time between two tokens; 0 if there are fewer than two.
  double longest_gap() const;
  // All tokens reached the client together: then, and not before the last one was sampled.
  void deliver_together(double time);
};

// The service level a user expects, in seconds. A request that meets all of it counts as goodput.
struct ServiceGoal {
  double time_to_first_token = 1.0;
  double time_between_tokens = 0.1;  // for every token

  bool met_by(const RequestTiming& timing) const;
};

// Parses "ttft=1,tbt=0.1"; either may be left out.
Result<ServiceGoal> parse_service_goal(std::string_view text);

}  // namespace hearth
