// Filters on single values: defaults, numbers, JSON.
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/print.h"
#include "engine/text/jinja/text_tools.h"

namespace hearth::jinja {
namespace value_filter {

Value default_filter(Interpreter&, const Value& self, const Arguments& arguments) {
  const Bound<2> given = bind("default", arguments, {"default_value", "boolean"});
  const bool replaced = self.is(Kind::kUndefined) || (is_true(given[1]) && !is_true(self));
  if (!replaced) return self;
  return given[0].given() ? given[0] : Value::borrowed("");
}

Value attr(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("attr", arguments, {"name"}, 1);
  fail_if_undefined(self);
  // Entries of a dict are no attributes.
  const std::string_view name = need_string(given[0], "attr").view_text();
  const Builtin* const method = find_method(self, name);
  if (method != nullptr) return in.method(*method, self);
  if (self.is(Kind::kDict)) return in.heap().undefined(Undefined::Why::kAttribute, name, "dict");
  return get_attribute(in, self, name);
}

Value absolute(Interpreter&, const Value& self, const Arguments& arguments) {
  bind_nothing("abs", arguments);
  fail_if_undefined(self);
  if (self.is(Kind::kFloat)) return Value::of(std::fabs(self.number), self.input);
  const std::int64_t number = need_integer(self, "abs");
  if (number == INT64_MIN) fail("a number is too large");
  return Value::of(number < 0 ? -number : number, self.input);
}

// Digits as Python's int() and float() take them: with white space around, underscores between.
std::optional<std::string> plain_digits(Heap& heap, const Value& string) {
  const Value stripped = strip(heap, string, {}, Side::kBoth);
  if (stripped.size == 0 || stripped.size > 400) return {};
  std::string digits;
  const std::string_view text = stripped.view_text();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
      continue;
    }
    const auto is_digit = [&](std::size_t at) {
      return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
    };
    if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) return {};
  }
  return digits;
}

std::optional<double> parse_float(Heap& heap, const Value& string) {
  auto digits = plain_digits(heap, string);
  if (!digits) return {};
  std::string_view text = *digits;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.starts_with('-') || text.starts_with('+')) return {};
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ptr != text.data() + text.size()) return {};
  if (read.ec == std::errc::result_out_of_range)
    number = text.find("e-") != text.npos || text.find("E-") != text.npos ? 0 : HUGE_VAL;
  return negative ? -number : number;
}

// Nothing where it is no integer. Fails where it is too large.
std::optional<std::int64_t> parse_integer(Heap& heap, const Value& string, std::int64_t base) {
  const auto digits = plain_digits(heap, string);
  if (!digits || base == 1 || base < 0 || base > 36) return {};
  std::string_view text = *digits;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0') {
    const char prefix = static_cast<char>(text[1] | 0x20);
    const std::int64_t named = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
    if (named != 0 && (base == named || base == 0)) {
      text.remove_prefix(2);
      base = named;
    }
  }
  if (base == 0) base = 10;
  if (text.empty() || text.starts_with('-')) return {};
  const std::string signed_text = fmt::format("{}{}", negative ? "-" : "", text);
  std::int64_t number = 0;
  const char* const end = signed_text.data() + signed_text.size();
  const auto read = std::from_chars(signed_text.data(), end, number, static_cast<int>(base));
  if (read.ptr != end) return {};
  if (read.ec == std::errc::result_out_of_range) fail("a number is too large");
  return number;
}

std::optional<std::int64_t> truncated(double number) {
  if (!std::isfinite(number)) return {};
  if (std::fabs(number) >= 9.2e18) fail("a number is too large");
  return static_cast<std::int64_t>(number);
}

Value to_int(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<2> given = bind("int", arguments, {"default", "base"});
  fail_if_undefined(self);
  const Value standard = given[0].given() ? given[0] : Value::of(std::int64_t{0});
  if (self.is_integer()) return Value::of(self.as_integer(), self.input);
  std::optional<std::int64_t> number;
  if (self.is(Kind::kFloat)) {
    number = truncated(self.number);
  } else if (self.is_string()) {
    number = parse_integer(in.heap(), self, integer_or(given[1], 10, "int"));
    if (!number)
      if (const auto whole = parse_float(in.heap(), self)) number = truncated(*whole);
  }
  return number ? Value::of(*number, self.has_input()) : standard;
}

Value to_float(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("float", arguments, {"default"});
  fail_if_undefined(self);
  if (self.is_number()) return Value::of(self.as_number(), self.input);
  if (self.is_string())
    if (const auto number = parse_float(in.heap(), self))
      return Value::of(*number, self.has_input());
  return given[0].given() ? given[0] : Value::of(0.0);
}

Value round(Interpreter&, const Value& self, const Arguments& arguments) {
  const Bound<2> given = bind("round", arguments, {"precision", "method"});
  fail_if_undefined(self);
  if (!self.is_number()) fail("round() needs a number");
  const std::int64_t precision = integer_or(given[0], 0, "round");
  const std::string_view method =
      given[1].given() ? need_string(given[1], "round").view_text() : "common";
  if (precision < -300 || precision > 300) fail("round() needs a smaller precision");
  const double number = self.as_number();
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return Value::of(std::ceil(number * scale) / scale, self.input);
  if (method == "floor") return Value::of(std::floor(number * scale) / scale, self.input);
  if (method != "common") fail("round() knows the methods common, ceil and floor");
  if (self.is_integer() && precision >= 0) return Value::of(self.as_integer(), self.input);
  if (precision < 0 || !std::isfinite(number)) {
    const double rounded = std::nearbyint(number * scale) / scale;
    if (self.is_integer()) return Value::of(truncated(rounded).value_or(0), self.input);
    return Value::of(rounded, self.input);
  }
  // Through decimal digits: 2.675 is a little less than that and rounds to 2.67.
  const std::string digits = fmt::format("{:.{}f}", number, precision);
  double rounded = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), rounded);
  return Value::of(rounded, self.input);
}

Value to_json(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<4> given =
      bind("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  Heap& heap = in.heap();
  JsonStyle style;
  style.ascii = is_true(given[0]);
  style.sorted = is_true(given[3]);
  if (given[1].given() && !given[1].is(Kind::kNone)) {
    style.is_spread = true;
    style.item_separator = ",";
    if (given[1].is_string()) {
      style.indent = given[1].view_text();
    } else {
      const std::int64_t width = need_integer(given[1], "tojson");
      if (width > 1000) fail("tojson() needs a smaller indent");
      style.indent =
          heap.copy(std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, width)), ' '));
    }
  }
  if (given[2].given() && !given[2].is(Kind::kNone)) {
    const std::span<const Value> separators = iterate(heap, given[2]);
    if (separators.size() != 2) fail("tojson() needs two separators");
    style.item_separator = need_string(separators[0], "tojson").view_text();
    style.key_separator = need_string(separators[1], "tojson").view_text();
  }
  TextBuilder out(heap);
  print_json(heap, self, style, out);
  return out.finish();
}

Value pretty(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("pprint", arguments);
  return repr_of(in.heap(), self);
}

}  // namespace value_filter

std::span<const Builtin> value_filters() {
  using namespace value_filter;
  static constexpr Builtin kTable[] = {
      {"abs", absolute},           {"attr", attr},      {"d", default_filter},
      {"default", default_filter}, {"float", to_float}, {"int", to_int},
      {"pprint", pretty},          {"round", round},    {"tojson", to_json},
  };
  return kTable;
}

}  // namespace hearth::jinja
