// "%s" % values.
#include <cmath>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/compare.h"
#include "engine/text/jinja/format.h"
#include "engine/text/jinja/format_field.h"
#include "engine/text/jinja/print.h"

namespace hearth::jinja {
namespace {

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

  // Of %(name)s; the parenthesis has been taken.
  Value named_value() {
    const std::size_t end = cursor_.text.find(')', cursor_.at);
    if (end == std::string_view::npos) fail("incomplete format key");
    if (!values_.is(Kind::kDict)) fail("format requires a mapping");
    const std::string_view key = cursor_.text.substr(cursor_.at, end - cursor_.at);
    const Value* const found = find(heap_, *values_.dict, key);
    if (found == nullptr) fail(fmt::format("the format's key '{}' is not there", excerpt(key)));
    named_ = true;
    cursor_.at = end + 1;
    return *found;
  }

  void flags(FieldLook& look) {
    for (;; ++cursor_.at) {
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
          return;
      }
    }
  }

  void field(TextBuilder& out) {
    FieldLook look;
    Value value;
    if (cursor_.take('(')) value = named_value();
    flags(look);
    look.width = number_or_star();
    if (look.width < 0) {
      look.align = '<';
      look.width = -std::max(look.width, -kMaxFieldWidth - 1);
    }
    if (cursor_.take('.')) look.precision = number_or_star();
    while (cursor_.take('l') || cursor_.take('h') || cursor_.take('L')) continue;
    if (cursor_.done()) fail("incomplete format");
    look.type = cursor_.now();
    ++cursor_.at;
    check_width(look);
    if (look.type == '%') return out.append("%", Origin::kTemplate);
    convert(out, value.given() ? value : next(), look);
  }

  void convert(TextBuilder& out, const Value& value, FieldLook look) {
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
  PatternCursor cursor_;
  std::size_t used_ = 0;
  bool named_ = false;
};

}  // namespace

Value format_percent(Heap& heap, const Value& pattern, const Value& values) {
  return PercentFormat(heap, pattern, values).run();
}

}  // namespace hearth::jinja
