// Parses text that is a number and nothing else.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace hearth {

// Nothing if the text has any other character or does not fit the type. Floating-point numbers may
// be "inf" but not "nan".
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end || value != value) return std::nullopt;
  return value;
}

}  // namespace hearth
