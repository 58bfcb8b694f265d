#include "engine/weights/metadata.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"

namespace hearth {
namespace {

// Above this, doubles cannot represent all integers.
constexpr std::uint64_t kExactIntegers = std::uint64_t{1} << 53;

Error wrong_kind(std::string_view key, std::string_view wanted) {
  return {ErrorKind::kInvalid, fmt::format("key {}: its value is not {}", in_quotes(key), wanted)};
}

std::optional<double> exact_double(std::uint64_t value) {
  if (value > kExactIntegers) return std::nullopt;
  return static_cast<double>(value);
}

std::optional<double> exact_double(std::int64_t value) {
  if (value > static_cast<std::int64_t>(kExactIntegers) ||
      value < -static_cast<std::int64_t>(kExactIntegers))
    return std::nullopt;
  return static_cast<double>(value);
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// Empty for booleans, which are not numbers, and for integers that a double cannot represent.
std::optional<double> packed_number(NumberType type, const std::byte* at) {
  switch (type) {
    case NumberType::kBool:
      return std::nullopt;
    case NumberType::kUint8:
      return load<std::uint8_t>(at);
    case NumberType::kUint16:
      return load<std::uint16_t>(at);
    case NumberType::kUint32:
      return load<std::uint32_t>(at);
    case NumberType::kUint64:
      return exact_double(load<std::uint64_t>(at));
    case NumberType::kInt8:
      return load<std::int8_t>(at);
    case NumberType::kInt16:
      return load<std::int16_t>(at);
    case NumberType::kInt32:
      return load<std::int32_t>(at);
    case NumberType::kInt64:
      return exact_double(load<std::int64_t>(at));
    case NumberType::kFloat32:
      return static_cast<double>(load<float>(at));
    case NumberType::kFloat64:
      return load<double>(at);
  }
  return std::nullopt;
}

std::optional<std::vector<double>> to_doubles(const PackedNumbers& packed) {
  std::vector<double> values(packed.size());
  const std::size_t stride = number_bytes(packed.type);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = packed_number(packed.type, packed.bytes.data() + i * stride);
    if (!value) return std::nullopt;
    values[i] = *value;
  }
  return values;
}

template <class T>
std::optional<std::vector<double>> to_doubles(const std::vector<T>& numbers) {
  std::vector<double> values;
  values.reserve(numbers.size());
  for (const T number : numbers) {
    const auto value = exact_double(number);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

}  // namespace

std::size_t number_bytes(NumberType type) {
  switch (type) {
    case NumberType::kBool:
    case NumberType::kUint8:
    case NumberType::kInt8:
      return 1;
    case NumberType::kUint16:
    case NumberType::kInt16:
      return 2;
    case NumberType::kUint32:
    case NumberType::kInt32:
    case NumberType::kFloat32:
      return 4;
    case NumberType::kUint64:
    case NumberType::kInt64:
    case NumberType::kFloat64:
      return 8;
  }
  return 1;
}

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

Result<std::optional<std::uint64_t>> Metadata::unsigned_integer(std::string_view key) const {
  const MetadataValue* const value = find(key);
  if (value == nullptr) return std::optional<std::uint64_t>();
  if (const auto* number = std::get_if<std::uint64_t>(value)) return std::optional(*number);
  if (const auto* number = std::get_if<std::int64_t>(value); number && *number >= 0)
    return std::optional(static_cast<std::uint64_t>(*number));
  if (const auto* number = std::get_if<double>(value);
      number && *number >= 0 && *number <= static_cast<double>(kExactIntegers) &&
      *number == std::floor(*number))
    return std::optional(static_cast<std::uint64_t>(*number));
  return wrong_kind(key, "a whole number of at least 0");
}

Result<std::optional<double>> Metadata::number(std::string_view key) const {
  const MetadataValue* const value = find(key);
  if (value == nullptr) return std::optional<double>();
  std::optional<double> number;
  if (const auto* integer = std::get_if<std::uint64_t>(value)) number = exact_double(*integer);
  if (const auto* integer = std::get_if<std::int64_t>(value)) number = exact_double(*integer);
  if (const auto* real = std::get_if<double>(value)) number = *real;
  if (!number || !std::isfinite(*number)) return wrong_kind(key, "a finite number");
  return number;
}

Result<std::optional<bool>> Metadata::boolean(std::string_view key) const {
  const MetadataValue* const value = find(key);
  if (value == nullptr) return std::optional<bool>();
  if (const auto* boolean = std::get_if<bool>(value)) return std::optional(*boolean);
  return wrong_kind(key, "true or false");
}

Result<std::optional<std::string_view>> Metadata::text(std::string_view key) const {
  const MetadataValue* const value = find(key);
  if (value == nullptr) return std::optional<std::string_view>();
  if (const auto* text = std::get_if<std::string>(value))
    return std::optional<std::string_view>(*text);
  return wrong_kind(key, "a string");
}

Result<std::optional<std::vector<double>>> Metadata::numbers(std::string_view key) const {
  const MetadataValue* const value = find(key);
  std::optional<std::vector<double>> numbers;
  if (value == nullptr) return numbers;
  if (const auto* array = std::get_if<PackedNumbers>(value)) numbers = to_doubles(*array);
  if (const auto* array = std::get_if<std::vector<double>>(value)) numbers = *array;
  if (const auto* array = std::get_if<std::vector<std::uint64_t>>(value))
    numbers = to_doubles(*array);
  if (const auto* array = std::get_if<std::vector<std::int64_t>>(value))
    numbers = to_doubles(*array);
  if (!numbers) return wrong_kind(key, "an array of numbers");
  return numbers;
}

Result<std::optional<std::vector<bool>>> Metadata::booleans(std::string_view key) const {
  const MetadataValue* const value = find(key);
  std::optional<std::vector<bool>> booleans;
  if (value == nullptr) return booleans;
  if (const auto* array = std::get_if<std::vector<bool>>(value)) booleans = *array;
  if (const auto* array = std::get_if<PackedNumbers>(value);
      array && array->type == NumberType::kBool) {
    booleans.emplace();
    booleans->reserve(array->size());
    for (const std::byte byte : array->bytes) booleans->push_back(byte != std::byte{0});
  }
  if (!booleans) return wrong_kind(key, "an array of booleans");
  return booleans;
}

Result<std::optional<std::vector<std::string_view>>> Metadata::texts(std::string_view key) const {
  const MetadataValue* const value = find(key);
  if (value == nullptr) return std::optional<std::vector<std::string_view>>();
  if (const auto* array = std::get_if<std::vector<std::string_view>>(value))
    return std::optional(*array);
  return wrong_kind(key, "an array of strings");
}

}  // namespace hearth
