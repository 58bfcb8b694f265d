#include "engine/weights/hugging_face/config_reader.h"

#include <cmath>

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"

namespace hearth::hugging_face {
namespace {

Error wrong_kind(std::string_view field, std::string_view wanted) {
  return {ErrorKind::kInvalid, fmt::format("{} is not {}", in_quotes(field), wanted)};
}

}  // namespace

const nlohmann::json* ConfigReader::find(std::string_view field) const {
  const auto found = object_.find(field);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

Result<std::optional<std::uint64_t>> ConfigReader::integer(std::string_view field) const {
  const nlohmann::json* const value = find(field);
  if (value == nullptr) return std::optional<std::uint64_t>();
  // Some configurations write whole numbers as 4096.0.
  constexpr double kLargest = 9007199254740992.0;
  if (value->is_number_unsigned()) return std::optional(value->get<std::uint64_t>());
  if (value->is_number_integer() && value->get<std::int64_t>() >= 0)
    return std::optional(static_cast<std::uint64_t>(value->get<std::int64_t>()));
  if (value->is_number_float()) {
    const auto number = value->get<double>();
    if (number >= 0 && number <= kLargest && number == std::floor(number))
      return std::optional(static_cast<std::uint64_t>(number));
  }
  return wrong_kind(field, "a whole number of at least 0");
}

Result<std::optional<double>> ConfigReader::number(std::string_view field) const {
  const nlohmann::json* const value = find(field);
  if (value == nullptr) return std::optional<double>();
  if (!value->is_number()) return wrong_kind(field, "a number");
  return std::optional(value->get<double>());
}

Result<std::optional<bool>> ConfigReader::boolean(std::string_view field) const {
  const nlohmann::json* const value = find(field);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_boolean()) return wrong_kind(field, "true or false");
  return std::optional(value->get<bool>());
}

Result<std::optional<std::string>> ConfigReader::text(std::string_view field) const {
  const nlohmann::json* const value = find(field);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return wrong_kind(field, "a string");
  return std::optional(value->get<std::string>());
}

Result<std::optional<std::vector<double>>> ConfigReader::numbers(std::string_view field) const {
  const nlohmann::json* const value = find(field);
  if (value == nullptr) return std::optional<std::vector<double>>();
  if (!value->is_array()) return wrong_kind(field, "an array of numbers");
  std::vector<double> numbers;
  for (const nlohmann::json& element : *value) {
    if (!element.is_number()) return wrong_kind(field, "an array of numbers");
    numbers.push_back(element.get<double>());
  }
  return std::optional(std::move(numbers));
}

Result<std::optional<std::vector<std::string>>> ConfigReader::texts(std::string_view field) const {
  const nlohmann::json* const value = find(field);
  if (value == nullptr) return std::optional<std::vector<std::string>>();
  if (!value->is_array()) return wrong_kind(field, "an array of strings");
  std::vector<std::string> texts;
  for (const nlohmann::json& element : *value) {
    if (!element.is_string()) return wrong_kind(field, "an array of strings");
    texts.push_back(element.get<std::string>());
  }
  return std::optional(std::move(texts));
}

Result<std::optional<ConfigReader>> ConfigReader::object(std::string_view field) const {
  const nlohmann::json* const value = find(field);
  if (value == nullptr) return std::optional<ConfigReader>();
  if (!value->is_object()) return wrong_kind(field, "an object");
  return std::optional<ConfigReader>(*value);
}

}  // namespace hearth::hugging_face
