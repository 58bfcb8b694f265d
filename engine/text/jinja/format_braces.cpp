// "{}".format(values).
#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/format.h"
#include "engine/text/jinja/format_field.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/print.h"

namespace hearth::jinja {
namespace {

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
    FieldLook look{.type = 0};
    if (cursor_.take(':')) look = spec();
    if (!cursor_.take('}')) fail("expected '}' in a format string");
    check_width(look);
    if (conversion == 'r' || conversion == 'a') value = repr_of(in_.heap(), value);
    if (conversion == 's') value = text_of(in_.heap(), value);
    convert(out, value, look);
  }

  Value argument(std::string_view name) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) {
      std::size_t index = next_++;
      if (!name.empty()) {
        PatternCursor digits{name};
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
        PatternCursor digits{key};
        const auto index = digits.number();
        value = get_item(in_, value,
                         index && digits.done() ? Value::of(*index) : in_.heap().string(key));
      } else {
        return value;
      }
    }
  }

  FieldLook spec() {
    FieldLook look{.type = 0};
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

  void convert(TextBuilder& out, const Value& value, FieldLook look) {
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
  PatternCursor cursor_;
  std::size_t next_ = 0;
};

}  // namespace

Value format_braces(Interpreter& in, const Value& pattern, const Arguments& arguments) {
  return BraceFormat(in, pattern, arguments).run();
}

}  // namespace hearth::jinja
