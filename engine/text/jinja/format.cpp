#include "engine/text/jinja/format.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/compare.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/print.h"

namespace hearth::jinja {
namespace {

constexpr std::int64_t kMaxWidth = 100'000;
constexpr std::int64_t kMaxPrecision = 300;

// How one value is to look; both kinds of formatting end here.
struct Look {
  char type = 's';  // as in both languages; 'd', 'f', 'g', 'x', ...
  char align = 0;   // '<', '>', '^', '=' (zeros between sign and digits), 0: by type
  char sign = '-';  // '+', ' ' or '-': only where negative
  std::string fill = " ";
  bool alternate = false, thousands = false;
  std::int64_t width = 0, precision = -1;
};

bool is_float_type(char type) {
  return std::string_view("eEfFgG%").find(type) != std::string::npos;
}
bool is_integer_type(char type) {
  return std::string_view("dioxXbu").find(type) != std::string::npos;
}

std::string with_thousands(std::string digits) {
  std::size_t end = digits.find_first_not_of("0123456789");
  if (end == digits.npos) end = digits.size();
  for (std::size_t at = end; at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

// The digits without a sign.
std::string integer_digits(const Value& value, const Look& look) {
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

std::string float_digits(double number, const Look& look) {
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

void append_fill(TextBuilder& out, const Look& look, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out.append(look.fill, Origin::kTemplate);
}

void append_padded(Budget& budget, TextBuilder& out, const Value& text, const Look& look,
                   char standard) {
  const char align = look.align == 0 || look.align == '=' ? standard : look.align;
  const std::int64_t room =
      look.width - static_cast<std::int64_t>(count_characters(budget, text.view_text()));
  const std::int64_t left = room <= 0 ? 0 : align == '<' ? 0 : align == '>' ? room : room / 2;
  append_fill(out, look, left);
  out.append(text);
  append_fill(out, look, room - left);
}

void append_number(Budget& budget, TextBuilder& out, const Value& value, const Look& look) {
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

void append_text(Heap& heap, TextBuilder& out, Value text, const Look& look) {
  if (look.precision >= 0)
    text = heap.slice(text, 0,
                      byte_of_character(heap.budget(), text.view_text(),
                                        static_cast<std::size_t>(look.precision)));
  append_padded(heap.budget(), out, text, look, '<');
}

void check(const Look& look) {
  if (look.width > kMaxWidth || look.precision > kMaxPrecision)
    fail("a format asks for too wide a field");
}

// A position in a pattern.
struct Cursor {
  std::string_view text;
  std::size_t at = 0;

  bool done() const { return at >= text.size(); }
  char now() const { return done() ? '\0' : text[at]; }
  bool take(char c) {
    if (now() != c || done()) return false;
    ++at;
    return true;
  }
  std::optional<std::int64_t> number() {
    if (now() < '0' || now() > '9') return {};
    std::int64_t value = 0;
    for (; now() >= '0' && now() <= '9'; ++at)
      value = std::min<std::int64_t>(value * 10 + (now() - '0'), kMaxWidth * 10);
    return value;
  }
};

class PercentFormat {
 public:
  PercentFormat(Heap& heap, const Value& pattern, const Value& values)
      : heap_(heap), pattern_(pattern), values_(values), cursor_{pattern.view_text()} {}

  Value run() {
    heap_.budget().handle_bytes(pattern_.size);
    TextBuilder out(heap_);
    std::size_t plain = 0;
    while ((cursor_.at = cursor_.text.find('%', cursor_.at)) != std::string_view::npos) {
      out.append_slice(pattern_, plain, cursor_.at);
      ++cursor_.at;
      field(out);
      plain = cursor_.at;
    }
    out.append_slice(pattern_, plain, cursor_.text.size());
    const std::size_t given = values_.is(Kind::kTuple) ? values_.list->size : 1;
    // Python takes everything with items for a mapping here, whose values need not all be used.
    const bool may_be_left = values_.is(Kind::kDict) || values_.is(Kind::kList) ||
                             values_.is(Kind::kRange) || values_.is(Kind::kUndefined);
    if (used_ < given && !named_ && !may_be_left)
      fail("not all arguments converted during string formatting");
    Value result = out.finish();
    result.markup = pattern_.markup;
    return result;
  }

 private:
  Value next() {
    const std::size_t given = values_.is(Kind::kTuple) ? values_.list->size : 1;
    if (used_ >= given) fail("not enough arguments for format string");
    const std::size_t index = used_++;
    return values_.is(Kind::kTuple) ? values_.list->items[index] : values_;
  }

  std::int64_t number_or_star() {
    if (!cursor_.take('*')) return cursor_.number().value_or(0);
    const Value value = next();
    if (!value.is_integer()) fail("* wants an integer in a format");
    return value.as_integer();
  }

  void field(TextBuilder& out) {
    Look look;
    Value value;
    if (cursor_.take('(')) {
      const std::size_t end = cursor_.text.find(')', cursor_.at);
      if (end == std::string_view::npos) fail("incomplete format key");
      if (!values_.is(Kind::kDict)) fail("format requires a mapping");
      const std::string_view key = cursor_.text.substr(cursor_.at, end - cursor_.at);
      const Value* const found = find(heap_, *values_.dict, key);
      if (found == nullptr) fail(fmt::format("the format's key '{}' is not there", excerpt(key)));
      value = *found;
      named_ = true;
      cursor_.at = end + 1;
    }
    for (bool flag = true; flag;) {
      switch (cursor_.now()) {
        case '-':
          look.align = '<';
          break;
        case '+':
          look.sign = '+';
          break;
        case ' ':
          if (look.sign != '+') look.sign = ' ';
          break;
        case '#':
          look.alternate = true;
          break;
        case '0':
          if (look.align != '<') look.align = '=';
          break;
        default:
          flag = false;
      }
      if (flag) ++cursor_.at;
    }
    look.width = number_or_star();
    if (look.width < 0) {
      look.align = '<';
      look.width = -std::max(look.width, -kMaxWidth - 1);
    }
    if (cursor_.take('.')) look.precision = number_or_star();
    while (cursor_.take('l') || cursor_.take('h') || cursor_.take('L')) continue;
    if (cursor_.done()) fail("incomplete format");
    look.type = cursor_.now();
    ++cursor_.at;
    check(look);
    if (look.type == '%') return out.append("%", Origin::kTemplate);
    convert(out, value.given() ? value : next(), look);
  }

  void convert(TextBuilder& out, const Value& value, Look look) {
    if (look.align == '=') look.fill = "0";
    if (look.type == 's' || look.type == 'r' || look.type == 'a') {
      look.fill = " ";
      if (look.align == 0 || look.align == '=') look.align = '>';
      Value text = look.type == 's' ? text_of(heap_, value) : repr_of(heap_, value);
      if (pattern_.markup && !text.markup) text = escaped(heap_, text);
      return append_text(heap_, out, text, look);
    }
    if (look.type == 'c') {
      look.fill = " ";
      if (look.align == 0 || look.align == '=') look.align = '>';
      if (value.is_string()) return append_text(heap_, out, value, look);
      std::string character;
      if (!value.is_integer() || value.as_integer() < 0 || value.as_integer() > 0x10FFFF)
        fail("%c requires a character or its number");
      append_character(character, static_cast<char32_t>(value.as_integer()));
      return append_text(heap_, out, heap_.string(character, Origin::kInput), look);
    }
    fail_if_undefined(value);
    if (!value.is_number())
      fail(
          fmt::format("%{} needs a number, not a value of type '{}'", look.type, type_name(value)));
    if (is_float_type(look.type) && look.type != '%')
      return append_number(heap_.budget(), out, value, look);
    if (!is_integer_type(look.type) || look.type == 'b')
      fail(fmt::format("unsupported format character '{}'", look.type));
    Value whole = value;
    if (value.is(Kind::kFloat)) {
      if (look.type == 'x' || look.type == 'X' || look.type == 'o' ||
          !(std::fabs(value.number) < 9e18))
        fail(fmt::format("%{} needs an integer", look.type));
      whole = Value::of(static_cast<std::int64_t>(value.number), value.input);
    }
    append_number(heap_.budget(), out, whole, look);
  }

  Heap& heap_;
  const Value& pattern_;
  const Value& values_;
  Cursor cursor_;
  std::size_t used_ = 0;
  bool named_ = false;
};

class BraceFormat {
 public:
  BraceFormat(Interpreter& in, const Value& pattern, const Arguments& arguments)
      : in_(in), pattern_(pattern), arguments_(arguments), cursor_{pattern.view_text()} {}

  Value run() {
    in_.budget().handle_bytes(pattern_.size);
    TextBuilder out(in_.heap());
    std::size_t plain = 0;
    while ((cursor_.at = cursor_.text.find_first_of("{}", cursor_.at)) != std::string_view::npos) {
      const char brace = cursor_.now();
      const bool is_double =
          cursor_.at + 1 < cursor_.text.size() && cursor_.text[cursor_.at + 1] == brace;
      out.append_slice(pattern_, plain, cursor_.at + (is_double ? 1 : 0));
      cursor_.at += is_double ? 2 : 1;
      if (!is_double && brace == '}') fail("single '}' encountered in format string");
      if (!is_double) field(out);
      plain = cursor_.at;
    }
    out.append_slice(pattern_, plain, cursor_.text.size());
    return out.finish();
  }

 private:
  void field(TextBuilder& out) {
    Value value = target();
    char conversion = 0;
    if (cursor_.take('!')) conversion = cursor_.now(), ++cursor_.at;
    Look look{.type = 0};
    if (cursor_.take(':')) look = spec();
    if (!cursor_.take('}')) fail("expected '}' in a format string");
    check(look);
    if (conversion == 'r' || conversion == 'a') value = repr_of(in_.heap(), value);
    if (conversion == 's') value = text_of(in_.heap(), value);
    convert(out, value, look);
  }

  Value argument(std::string_view name) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) {
      std::size_t index = next_++;
      if (!name.empty()) {
        Cursor digits{name};
        index = static_cast<std::size_t>(digits.number().value_or(0));
      }
      if (index >= arguments_.positional.size())
        fail("a format string has more places than arguments");
      return arguments_.positional[index];
    }
    in_.budget().step(1 + arguments_.named.size() / 16);
    for (const NamedValue& each : arguments_.named)
      if (each.name == name) return each.value;
    fail(fmt::format("a format string needs an argument '{}'", excerpt(name)));
  }

  Value target() {
    const auto word = [&](std::string_view ends) {
      const std::size_t end =
          std::min(cursor_.text.find_first_of(ends, cursor_.at), cursor_.text.size());
      const std::string_view text = cursor_.text.substr(cursor_.at, end - cursor_.at);
      cursor_.at = end;
      return text;
    };
    Value value = argument(word("!:}.[{"));
    while (true) {
      if (cursor_.take('.')) {
        value = get_attribute(in_, value, in_.heap().copy(word("!:}.[{")));
      } else if (cursor_.take('[')) {
        const std::string_view key = word("]");
        if (!cursor_.take(']')) fail("expected ']' in a format string");
        Cursor digits{key};
        const auto index = digits.number();
        value = get_item(in_, value,
                         index && digits.done() ? Value::of(*index) : in_.heap().string(key));
      } else {
        return value;
      }
    }
  }

  Look spec() {
    Look look{.type = 0};
    const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
    const std::string_view rest = cursor_.text.substr(cursor_.at);
    const std::size_t first = rest.empty() ? 0 : character_at(rest, 0).bytes;
    if (first < rest.size() && is_align(rest[first]) && rest[0] != '}') {
      look.fill = rest.substr(0, first);
      look.align = rest[first];
      cursor_.at += first + 1;
    } else if (is_align(cursor_.now())) {
      look.align = cursor_.now();
      ++cursor_.at;
    }
    if (cursor_.now() == '+' || cursor_.now() == '-' || cursor_.now() == ' ')
      look.sign = cursor_.now(), ++cursor_.at;
    look.alternate = cursor_.take('#');
    if (cursor_.now() == '0' && look.align == 0) {
      look.align = '=';
      look.fill = "0";
    }
    look.width = cursor_.number().value_or(0);
    look.thousands = cursor_.take(',');
    if (cursor_.take('.')) {
      const auto precision = cursor_.number();
      if (!precision) fail("a format string misses a precision");
      look.precision = *precision;
    }
    if (cursor_.now() != '}') look.type = cursor_.now(), ++cursor_.at;
    return look;
  }

  void convert(TextBuilder& out, const Value& value, Look look) {
    Heap& heap = in_.heap();
    const bool plain = look.type == 0;
    if (!value.is_number() || (value.is(Kind::kBool) && plain)) {
      if (!plain && look.type != 's')
        fail(fmt::format("a value of type '{}' cannot be formatted as '{}'", type_name(value),
                         look.type));
      return append_text(heap, out, text_of(heap, value), look);
    }
    if (plain && value.is(Kind::kFloat) && look.precision < 0) {
      if (look.align == 0) look.align = '>';
      return append_text(heap, out, text_of(heap, value), look);
    }
    if (plain) look.type = value.is_integer() ? 'd' : 'g';
    const bool fits =
        is_float_type(look.type) ||
        (is_integer_type(look.type) && value.is_integer() && look.type != 'i' && look.type != 'u');
    if (!fits)
      fail(fmt::format("a value of type '{}' cannot be formatted as '{}'", type_name(value),
                       look.type));
    append_number(heap.budget(), out, value, look);
  }

  Interpreter& in_;
  const Value& pattern_;
  const Arguments& arguments_;
  Cursor cursor_;
  std::size_t next_ = 0;
};

}  // namespace

Value format_percent(Heap& heap, const Value& pattern, const Value& values) {
  return PercentFormat(heap, pattern, values).run();
}

Value format_braces(Interpreter& in, const Value& pattern, const Arguments& arguments) {
  return BraceFormat(in, pattern, arguments).run();
}

}  // namespace hearth::jinja
