#include "engine/text/jinja/print.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/function.h"
#include "engine/text/jinja/loop.h"

namespace hearth::jinja {
namespace {

Origin scalar_origin(const Value& value) {
  return value.input ? Origin::kInput : Origin::kTemplate;
}

void print_string_repr(Heap& heap, const Value& value, TextBuilder& out) {
  const std::string_view text = value.view_text();
  Meter meter(heap.budget());
  const bool double_quotes = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = double_quotes ? '"' : '\'';
  const std::string_view quotes(&quote, 1);
  if (value.markup) out.append("Markup(", kFrame);
  out.append(quotes, kFrame);
  OriginCursor origin(value);
  std::size_t plain = 0;  // start of what needs no escapes
  for (std::size_t at = 0; at < text.size();) {
    meter.reach(at);
    const Character next = character_at(text, at);
    const char32_t c = next.code;
    if (c != U'\\' && c != static_cast<char32_t>(quote) && (c == kNoCode || is_printable(c))) {
      at += next.bytes;
      continue;
    }
    out.append_slice(value, plain, at);
    const std::string escape = c == U'\n'                          ? "\\n"
                               : c == U'\r'                        ? "\\r"
                               : c == U'\t'                        ? "\\t"
                               : c == U'\\'                        ? "\\\\"
                               : c == static_cast<char32_t>(quote) ? fmt::format("\\{}", quote)
                               : c < 0x100   ? fmt::format("\\x{:02x}", static_cast<unsigned>(c))
                               : c < 0x10000 ? fmt::format("\\u{:04x}", static_cast<unsigned>(c))
                                             : fmt::format("\\U{:08x}", static_cast<unsigned>(c));
    out.append(escape, origin.at(at));
    at += next.bytes;
    plain = at;
  }
  out.append_slice(value, plain, text.size());
  out.append(quotes, kFrame);
  if (value.markup) out.append(")", kFrame);
}

void print_items(Heap& heap, std::span<const Value> items, TextBuilder& out) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(", ", kFrame);
    print_repr(heap, items[i], out);
  }
}

void print_dict(Heap& heap, const Dict& dict, TextBuilder& out) {
  out.append("{", kFrame);
  for (std::size_t i = 0; i < dict.size; ++i) {
    if (i > 0) out.append(", ", kFrame);
    print_repr(heap, dict.entries[i].key, out);
    out.append(": ", kFrame);
    print_repr(heap, dict.entries[i].value, out);
  }
  out.append("}", kFrame);
}

void print_view(Heap& heap, const Value& value, TextBuilder& out) {
  out.append(type_name(value), kFrame);
  out.append("([", kFrame);
  print_items(heap, iterate(heap, value), out);
  out.append("])", kFrame);
}

std::string range_text(const Range& range) {
  if (range.step == 1) return fmt::format("range({}, {})", range.start, range.stop);
  return fmt::format("range({}, {}, {})", range.start, range.stop, range.step);
}

}  // namespace

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer{};
  const auto made = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                  std::chars_format::scientific);
  const std::string_view shortest(buffer.data(),
                                  static_cast<std::size_t>(made.ptr - buffer.data()));
  const std::size_t e = shortest.find('e');
  int exponent = 0;
  const char* digits = shortest.data() + e + 1;
  if (*digits == '+') ++digits;
  std::from_chars(digits, shortest.data() + shortest.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}e{}{:02}", shortest.substr(0, e), exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  std::array<char, 64> fixed{};
  const auto end =
      std::to_chars(fixed.data(), fixed.data() + fixed.size(), number, std::chars_format::fixed);
  std::string result(fixed.data(), end.ptr);
  if (result.find('.') == result.npos) result += ".0";
  return result;
}

void print(Heap& heap, const Value& value, TextBuilder& out) {
  if (value.is_string()) {
    out.append(value);
  } else if (!value.is(Kind::kUndefined)) {
    print_repr(heap, value, out);
  }
}

void print_repr(Heap& heap, const Value& value, TextBuilder& out) {
  heap.budget().step();
  switch (value.kind) {
    case Kind::kMissing:
      return;
    case Kind::kUndefined:
      return out.append("Undefined", Origin::kTemplate);
    case Kind::kNone:
      return out.append("None", scalar_origin(value));
    case Kind::kBool:
      return out.append(value.boolean ? "True" : "False", scalar_origin(value));
    case Kind::kInt:
      return out.append(fmt::format("{}", value.integer), scalar_origin(value));
    case Kind::kFloat:
      return out.append(float_text(value.number), scalar_origin(value));
    case Kind::kString:
      return print_string_repr(heap, value, out);
    default:
      break;
  }
  const Nested nested(heap.budget());
  switch (value.kind) {
    case Kind::kList:
      out.append("[", kFrame);
      print_items(heap, value.list->all(), out);
      return out.append("]", kFrame);
    case Kind::kTuple:
      out.append("(", kFrame);
      print_items(heap, value.list->all(), out);
      return out.append(value.list->size == 1 ? ",)" : ")", kFrame);
    case Kind::kDict:
      return print_dict(heap, *value.dict, out);
    case Kind::kNamespace:
      out.append("<Namespace ", kFrame);
      print_dict(heap, *value.dict, out);
      return out.append(">", kFrame);
    case Kind::kView:
      return print_view(heap, value, out);
    case Kind::kRange:
      return out.append(range_text(*value.range), kFrame);
    case Kind::kFunction:
      if (value.function->macro != nullptr)
        return out.append(fmt::format("<Macro '{}'>", value.function->name), kFrame);
      return out.append(fmt::format("<function {}>", value.function->name), kFrame);
    case Kind::kLoop:
      return out.append("<LoopContext>", kFrame);
    default:
      return out.append(fmt::format("<{} object>", type_name(value)), kFrame);
  }
}

Value text_of(Heap& heap, const Value& value) {
  if (value.is_string()) return value;
  TextBuilder out(heap);
  print(heap, value, out);
  return out.finish();
}

Value repr_of(Heap& heap, const Value& value) {
  TextBuilder out(heap);
  print_repr(heap, value, out);
  return out.finish();
}

Value escaped(Heap& heap, const Value& string) {
  TextBuilder out(heap);
  OriginCursor origin(string);
  const std::string_view text = string.view_text();
  Meter meter(heap.budget());
  std::size_t plain = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    meter.reach(at);
    const char c = text[at];
    if (c != '&' && c != '<' && c != '>' && c != '\'' && c != '"') continue;
    out.append_slice(string, plain, at);
    out.append(c == '&'    ? "&amp;"
               : c == '<'  ? "&lt;"
               : c == '>'  ? "&gt;"
               : c == '\'' ? "&#39;"
                           : "&#34;",
               origin.at(at));
    plain = at + 1;
  }
  out.append_slice(string, plain, text.size());
  Value result = out.finish();
  result.markup = true;
  return result;
}

}  // namespace hearth::jinja
