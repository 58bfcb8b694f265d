#include "engine/text/jinja/format_field.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "engine/text/jinja/characters.h"

namespace hearth::jinja {
namespace {

constexpr std::int64_t kMaxPrecision = 300;

std::string with_thousands(std::string digits) {
  std::size_t end = digits.find_first_not_of("0123456789");
  if (end == digits.npos) end = digits.size();
  for (std::size_t at = end; at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

// The digits without a sign.
std::string integer_digits(const Value& value, const FieldLook& look) {
  const std::int64_t number = value.as_integer();
  const std::uint64_t size =
      number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  switch (look.type) {
    case 'x':
      return fmt::format("{}{:x}", look.alternate ? "0x" : "", size);
    case 'X':
      return fmt::format("{}{:X}", look.alternate ? "0X" : "", size);
    case 'o':
      return fmt::format("{}{:o}", look.alternate ? "0o" : "", size);
    case 'b':
      return fmt::format("{}{:b}", look.alternate ? "0b" : "", size);
    default:
      return fmt::format("{}", size);
  }
}

std::string float_digits(double number, const FieldLook& look) {
  const double size = std::fabs(number);
  if (!std::isfinite(size)) return std::isnan(size) ? "nan" : "inf";
  const int precision = look.precision < 0 ? 6 : static_cast<int>(look.precision);
  switch (look.type) {
    case 'e':
      return fmt::format("{:.{}e}", size, precision);
    case 'E':
      return fmt::format("{:.{}E}", size, precision);
    case 'g':
      return fmt::format("{:.{}g}", size, precision);
    case 'G':
      return fmt::format("{:.{}G}", size, precision);
    case '%':
      return fmt::format("{:.{}f}%", size * 100, precision);
    default:
      return fmt::format("{:.{}f}", size, precision);
  }
}

void append_fill(TextBuilder& out, const FieldLook& look, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out.append(look.fill, Origin::kTemplate);
}

void append_padded(Budget& budget, TextBuilder& out, const Value& text, const FieldLook& look,
                   char standard) {
  const char align = look.align == 0 || look.align == '=' ? standard : look.align;
  const std::int64_t room =
      look.width - static_cast<std::int64_t>(count_characters(budget, text.view_text()));
  const std::int64_t left = room <= 0 ? 0 : align == '<' ? 0 : align == '>' ? room : room / 2;
  append_fill(out, look, left);
  out.append(text);
  append_fill(out, look, room - left);
}

}  // namespace

bool is_float_type(char type) {
  return std::string_view("eEfFgG%").find(type) != std::string::npos;
}
bool is_integer_type(char type) {
  return std::string_view("dioxXbu").find(type) != std::string::npos;
}

void append_number(Budget& budget, TextBuilder& out, const Value& value, const FieldLook& look) {
  const bool as_integer = is_integer_type(look.type);
  std::string digits =
      as_integer ? integer_digits(value, look) : float_digits(value.as_number(), look);
  if (as_integer && look.precision > 0)
    digits.insert(0, std::max<std::int64_t>(0, look.precision - std::ssize(digits)), '0');
  if (look.thousands) digits = with_thousands(std::move(digits));
  const bool is_negative = value.is_integer() ? value.as_integer() < 0 : std::signbit(value.number);
  const std::string sign = is_negative ? "-" : look.sign == '-' ? "" : std::string(1, look.sign);
  const Origin origin = value.input ? Origin::kInput : Origin::kTemplate;
  if (look.align == '=') {
    out.append(sign, origin);
    append_fill(out, look, look.width - std::ssize(sign) - std::ssize(digits));
    out.append(digits, origin);
    return;
  }
  const std::string text = sign + digits;
  append_padded(budget, out, Value::borrowed(text, origin), look, '>');
}

void append_text(Heap& heap, TextBuilder& out, Value text, const FieldLook& look) {
  if (look.precision >= 0)
    text = heap.slice(text, 0,
                      byte_of_character(heap.budget(), text.view_text(),
                                        static_cast<std::size_t>(look.precision)));
  append_padded(heap.budget(), out, text, look, '<');
}

void check_width(const FieldLook& look) {
  if (look.width > kMaxFieldWidth || look.precision > kMaxPrecision)
    fail("a format asks for too wide a field");
}

}  // namespace hearth::jinja
