// JSON that comes from elsewhere, read without exceptions and without taking a multiple of its
// size. A library parses it; what that would allow without bounds is refused before.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/result.h"

namespace hearth {

struct JsonLimits {
  std::size_t depth = 32;
  std::size_t token_bytes = 64 * 1024;  // of one string or number
  std::size_t total_bytes = 256 * 1024;
};

// Fails on text that goes beyond the limits; whether it is JSON is not looked at.
Status check_json_limits(std::string_view text, const JsonLimits& limits);

// A tree, of a small text: a node takes many times its text. Errors say at which byte.
Result<nlohmann::json> parse_json(std::string_view text);

Error json_error(std::size_t byte);

}  // namespace hearth
