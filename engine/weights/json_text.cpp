#include "engine/weights/json_text.h"

#include <fmt/format.h>

namespace hearth {
namespace {

// Used only for the position of an error.
struct ErrorPosition : nlohmann::json_sax<nlohmann::json> {
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(nlohmann::json::binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(std::string&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    byte = position;
    return false;
  }
  std::size_t byte = 0;
};

}  // namespace

Status check_json_limits(std::string_view text, const JsonLimits& limits) {
  const auto beyond = [](std::size_t at, std::string_view what) {
    return Error{ErrorKind::kInvalid, fmt::format("byte {}: the JSON has {}", at, what)};
  };
  if (text.size() > limits.total_bytes)
    return Error{ErrorKind::kInvalid, fmt::format("{} bytes of JSON are more than the {} allowed",
                                                  text.size(), limits.total_bytes)};
  std::size_t depth = 0, token_start = 0;
  bool in_string = false, escaped = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (!escaped && c == '"') in_string = false;
      escaped = !escaped && c == '\\';
    } else if (c == '"') {
      in_string = true;
      token_start = i;
    } else if (c == '{' || c == '[') {
      if (++depth > limits.depth) return beyond(i, "too many levels");
      token_start = i;
    } else if (c == '}' || c == ']') {
      if (depth > 0) --depth;
      token_start = i;
    } else if (c == ',' || c == ':' || c == ' ' || c == '\n' || c == '\r' || c == '\t') {
      token_start = i;
    }
    if (i - token_start > limits.token_bytes)
      return beyond(token_start, "a value that is too long");
  }
  return {};
}

Result<nlohmann::json> parse_json(std::string_view text) {
  HEARTH_TRY(check_json_limits(text, {}));
  auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_discarded()) return json;
  ErrorPosition position;
  nlohmann::json::sax_parse(text.begin(), text.end(), &position);
  return json_error(position.byte);
}

Error json_error(std::size_t byte) {
  return {ErrorKind::kInvalid, fmt::format("byte {}: not valid JSON", byte)};
}

}  // namespace hearth
