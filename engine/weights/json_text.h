// Reads untrusted JSON without exceptions and without needing many times its size. A library parses
// it; text beyond the limits is refused first, because the library has none.
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

// Fails if the text exceeds the limits. Does not check whether it is JSON.
Status check_json_limits(std::string_view text, const JsonLimits& limits);

// Parses into a tree; for small texts, because a node takes many times the size of its text. Errors
// name the byte.
Result<nlohmann::json> parse_json(std::string_view text);

Error json_error(std::size_t byte);

}  // namespace hearth
