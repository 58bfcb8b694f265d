#include "tools/options/option_value.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/weights/in_quotes.h"

namespace hearth {
namespace {

// The type of an optional's value; any other type itself.
template <class T>
struct Unwrapped {
  using Type = T;
};
template <class T>
struct Unwrapped<std::optional<T>> {
  using Type = T;
};
template <class T>
using ValueOf = typename Unwrapped<T>::Type;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool has_leading_zero(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && is_digit(text[1]);
}

template <class Number, class... Format>
std::optional<Number> parse_whole(std::string_view text, Format... format) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, format...);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return number;
}

template <class Number>
std::optional<Number> parse_option_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if constexpr (std::is_integral_v<Number>) {
    if (text.starts_with("0x")) return parse_whole<Number>(text.substr(2), 16);
    if (has_leading_zero(text)) return std::nullopt;
    return parse_whole<Number>(text);
  } else {
    const std::optional<Number> number = parse_whole<Number>(text);
    return number && std::isfinite(*number) ? number : std::nullopt;
  }
}

template <class Number>
std::string what_is_wrong(std::string_view text) {
  if constexpr (std::is_integral_v<Number>) {
    if (const auto wide = parse_option_number<double>(text); wide && std::floor(*wide) == *wide) {
      if (*wide < 0 && std::is_unsigned_v<Number>) return "must not be negative";
      if (std::abs(*wide) > static_cast<double>(std::numeric_limits<Number>::max()))
        return fmt::format("{} is too large", text);
      if (has_leading_zero(text)) return fmt::format("write {} without the leading zero", text);
    }
    return fmt::format("{} is not a whole number", in_quotes(text));
  } else {
    return fmt::format("{} is not a number", in_quotes(text));
  }
}

template <class Number>
std::optional<std::string> out_of_range(Number number, const std::optional<OptionRange>& range) {
  const auto wide = static_cast<double>(number);
  if (!range || (wide >= range->lowest && wide <= range->highest)) return std::nullopt;
  constexpr double kNoRealLimit = 1e9, kAnyPositive = 1e-6;
  if (range->lowest > 0 && range->lowest < kAnyPositive && wide < range->lowest)
    return fmt::format("{} is too small: it must be more than 0", number);
  if (range->highest < kNoRealLimit)
    return fmt::format("{} is out of range: it must be between {} and {}", number, range->lowest,
                       range->highest);
  return wide < range->lowest
             ? fmt::format("{} is too small: it must be at least {}", number, range->lowest)
             : fmt::format("{} is too large: it must be at most {}", number, range->highest);
}

template <class Variable>
std::optional<std::string> store_number(Variable& variable, std::string_view text,
                                        const std::optional<OptionRange>& range) {
  using Number = ValueOf<Variable>;
  const std::optional<Number> number = parse_option_number<Number>(text);
  if (!number) return what_is_wrong<Number>(text);
  if (auto wrong = out_of_range(*number, range)) return wrong;
  variable = *number;
  return std::nullopt;
}

constexpr std::string_view kSizeLetters = "kmgt";

char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The factor of "", "b", "k", "MB", "GiB" and so on.
std::optional<double> unit_bytes(std::string_view unit) {
  if (unit.empty()) return 1;
  double factor = 1;
  if (const size_t letter = kSizeLetters.find(lower_letter(unit[0]));
      letter != std::string_view::npos) {
    factor = std::pow(1024.0, static_cast<double>(letter + 1));
    unit.remove_prefix(1);
    if (unit.size() == 2 && lower_letter(unit[0]) == 'i') unit.remove_prefix(1);
  }
  if (unit.empty() || (unit.size() == 1 && lower_letter(unit[0]) == 'b')) return factor;
  return std::nullopt;
}

std::optional<double> parse_size(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string_view unit = text.substr(digits);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto number = parse_whole<double>(text.substr(0, digits), std::chars_format::fixed);
  const auto factor = unit_bytes(unit);
  if (!number || !factor || has_leading_zero(text)) return std::nullopt;
  return *number * *factor;
}

}  // namespace

bool is_flag(const OptionTarget& target) {
  return std::holds_alternative<bool*>(target) ||
         std::holds_alternative<std::optional<bool>*>(target);
}

bool is_list(const OptionTarget& target) {
  return std::holds_alternative<std::vector<std::string>*>(target) ||
         std::holds_alternative<std::vector<uint32_t>*>(target);
}

bool is_number(const OptionTarget& target) {
  return std::visit(
      [](auto* variable) {
        using Type = ValueOf<std::remove_pointer_t<decltype(variable)>>;
        return std::is_same_v<Type, std::vector<uint32_t>> ||
               (std::is_arithmetic_v<Type> && !std::is_same_v<Type, bool>);
      },
      target);
}

void store_flag(const OptionTarget& target, bool value) {
  if (auto* const* flag = std::get_if<bool*>(&target))
    **flag = value;
  else
    *std::get<std::optional<bool>*>(target) = value;
}

void clear_list(const OptionTarget& target) {
  if (const auto* words = std::get_if<std::vector<std::string>*>(&target)) (*words)->clear();
  if (const auto* numbers = std::get_if<std::vector<uint32_t>*>(&target)) (*numbers)->clear();
}

std::optional<std::string> store_value(const OptionTarget& target, std::string_view text,
                                       const std::optional<OptionRange>& range) {
  return std::visit(
      [&](auto* variable) -> std::optional<std::string> {
        using Type = ValueOf<std::remove_pointer_t<decltype(variable)>>;
        if constexpr (std::is_same_v<Type, bool>) {
          return "takes no value";
        } else if constexpr (std::is_arithmetic_v<Type>) {
          return store_number(*variable, text, range);
        } else if constexpr (std::is_same_v<Type, std::vector<uint32_t>>) {
          uint32_t number = 0;
          if (auto wrong = store_number(number, text, range)) return wrong;
          variable->push_back(number);
        } else if constexpr (std::is_same_v<Type, std::vector<std::string>>) {
          variable->emplace_back(text);
        } else {
          *variable = std::string(text);
        }
        return std::nullopt;
      },
      target);
}

std::optional<std::string> store_size(const OptionTarget& target, std::string_view text,
                                      const std::optional<OptionRange>& range) {
  const std::optional<double> bytes = parse_size(text);
  constexpr double kMost = 0x1p53;
  if (!bytes) return fmt::format("{} is not a size such as 512MB", in_quotes(text));
  if (*bytes > (range ? range->highest : kMost)) return fmt::format("{} is too large", text);
  if (range && *bytes < range->lowest) return fmt::format("{} is too small", text);
  *std::get<uint64_t*>(target) = static_cast<uint64_t>(*bytes);
  return std::nullopt;
}

std::string value_text(const OptionTarget& target) {
  return std::visit(
      [](auto* variable) -> std::string {
        using Variable = std::remove_pointer_t<decltype(variable)>;
        if constexpr (std::is_same_v<Variable, std::string>)
          return *variable;
        else if constexpr (std::is_same_v<Variable, std::filesystem::path>)
          return variable->string();
        else if constexpr (std::is_arithmetic_v<Variable> && !std::is_same_v<Variable, bool>)
          return *variable == Variable{} ? std::string() : fmt::format("{}", *variable);
        else if constexpr (requires { variable->begin(); })
          return fmt::format("{}", fmt::join(*variable, ","));
        else
          return {};
      },
      target);
}

std::string size_text(const OptionTarget& target) {
  uint64_t bytes = *std::get<uint64_t*>(target);
  if (bytes == 0) return {};
  size_t letter = 0;
  constexpr std::array<std::string_view, 5> kUnits = {"", "KB", "MB", "GB", "TB"};
  while (letter + 1 < kUnits.size() && bytes % 1024 == 0) {
    bytes /= 1024;
    ++letter;
  }
  return fmt::format("{}{}", bytes, kUnits[letter]);
}

}  // namespace hearth
