// The body of POST /control: what to change about a running engine. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/scheduling/policy.h"
#include "engine/scheduling/scheduler.h"
#include "tools/server/api_error.h"

namespace hearth {

// What is not set stays as it is.
struct ControlRequest {
  std::optional<bool> paused;
  bool step = false;  // run one step; only while paused
  std::optional<double> pace;
  std::optional<Policy> policy;
  std::optional<uint32_t> max_sequences, max_step_tokens, pool_blocks;
  std::vector<RequestId> cancelled;
  struct Priority {
    RequestId request = 0;
    int32_t value = 0;
  };
  std::optional<Priority> priority;

  bool sets_limits() const { return max_sequences || max_step_tokens || pool_blocks; }
};

// A policy is a name, or an object of switches that change the `present` one.
std::variant<ControlRequest, ApiError> parse_control_request(std::string_view body,
                                                             const Policy& present);

}  // namespace hearth
