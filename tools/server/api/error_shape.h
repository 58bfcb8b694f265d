// Errors in the shape that each API's clients expect. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/server/api_error.h"

namespace hearth {

enum class ErrorShape {
  kOpenAi,     // {"error": {"message", "type", "param", "code"}}
  kAnthropic,  // {"type": "error", "error": {"type", "message"}}
  kOllama,     // {"error": MESSAGE}
};

nlohmann::json error_body(ErrorShape shape, const ApiError& error);

}  // namespace hearth
