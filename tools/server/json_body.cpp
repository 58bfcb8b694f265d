#include "tools/server/json_body.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace hearth {

using nlohmann::json;

JsonShape json_shape(std::string_view text) {
  JsonShape shape{.values = 1};
  struct Level {
    bool is_object = false;
    size_t commas = 0;
  };
  std::array<Level, kMostJsonLevels + 1> levels = {};  // deeper ones are not looked at
  size_t level = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      shape.levels = std::max(shape.levels, ++level);
      ++shape.values;
      if (level < levels.size()) levels[level] = {.is_object = c == '{'};
    } else if (c == '}' || c == ']') {
      if (level > 0) --level;
    } else if (c == ',') {
      ++shape.values;
      if (level < levels.size() && levels[level].is_object)
        shape.widest = std::max(shape.widest, ++levels[level].commas);
    }
  }
  return shape;
}

uint64_t parse_bytes(std::string_view body) {
  // Of a value in a growing list, and of an object's member: measured at 60 to 100.
  constexpr uint64_t kBytesPerValue = 96;
  // Texts are copied out of the tree, and cut into tokens.
  constexpr uint64_t kBytesPerByte = 3;
  // A body beyond the limit is not parsed at all.
  const size_t values = std::min(json_shape(body).values, kMostJsonValues);
  return values * kBytesPerValue + body.size() * kBytesPerByte;
}

std::optional<ApiError> check_json_shape(std::string_view text) {
  const JsonShape shape = json_shape(text);
  // Deep nesting would overflow the parser's stack.
  if (shape.levels > kMostJsonLevels)
    return ApiError{
        .message = fmt::format("the body is nested more than {} levels deep", kMostJsonLevels)};
  if (shape.values > kMostJsonValues)
    return ApiError{.message = fmt::format("the body has more than {} values", kMostJsonValues)};
  return std::nullopt;
}

ApiError not_json(std::string_view body) {
  size_t bytes = 0;
  try {
    [[maybe_unused]] const json parsed = json::parse(body);
  } catch (const json::parse_error& error) {
    bytes = std::min(error.byte, body.size());
  } catch (const json::exception&) {  // a number that is too large, say
    return {.message = "the body is not valid JSON"};
  }
  const std::string_view read = body.substr(0, bytes);
  const size_t last = read.rfind('\n');
  return {.message = fmt::format("the body is not valid JSON: see line {}, column {}",
                                 std::ranges::count(read, '\n') + 1,
                                 last == read.npos ? read.size() : read.size() - last - 1)};
}

std::variant<json, ApiError> parse_json_body(std::string_view body) {
  if (const auto error = check_json_shape(body)) return *error;
  json object = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return not_json(body);
  if (!object.is_object()) return ApiError{.message = "the body must be a JSON object"};
  return object;
}

}  // namespace hearth
