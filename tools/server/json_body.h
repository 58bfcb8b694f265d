// A request's body as JSON, with limits on what it may cost: a tree takes many times the memory of
// its text. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <variant>

#include "tools/server/api_error.h"

namespace hearth {

// More than any request needs, and few enough to fit in memory many times over.
inline constexpr size_t kMostJsonLevels = 64;
inline constexpr size_t kMostJsonValues = 1 << 18;

// What a text has, whether it is valid or not. Found in one pass, without allocating.
struct JsonShape {
  size_t levels = 0;
  size_t values = 0;  // at least as many as there are
  size_t widest = 0;  // commas between the members of the object that has the most
};
JsonShape json_shape(std::string_view text);

// About how many bytes it takes to parse a body and to make prompts of it.
uint64_t parse_bytes(std::string_view body);

// Whether a text is too deep or has too many values to be parsed.
std::optional<ApiError> check_json_shape(std::string_view text);

// Where a text stops being JSON. REQUIRES: it is not JSON.
ApiError not_json(std::string_view body);

// The body, which must be an object.
std::variant<nlohmann::json, ApiError> parse_json_body(std::string_view body);

}  // namespace hearth
