// Values as text: as Python prints them, and as JSON.
#pragma once

#include <string>

#include "engine/text/jinja/text_builder.h"

namespace hearth::jinja {

// Brackets, commas and quotes around data. Whose they are cannot be told, so they count as input.
inline constexpr Origin kFrame = Origin::kInput;

// Python's str(value), as a string value. A string is returned as it is.
Value text_of(Heap& heap, const Value& value);
void print(Heap& heap, const Value& value, TextBuilder& out);
// Python's repr(value).
void print_repr(Heap& heap, const Value& value, TextBuilder& out);
Value repr_of(Heap& heap, const Value& value);

// As Python prints a float: 1.0, 1e+16, nan.
std::string float_text(double number);

struct JsonStyle {
  bool ascii = false;      // other characters become \uXXXX
  bool is_spread = false;  // over lines, with `indent` per level
  std::string_view indent;
  std::string_view item_separator = ", ", key_separator = ": ";
  bool sorted = false;
};
// Python's json.dumps(value).
void print_json(Heap& heap, const Value& value, const JsonStyle& style, TextBuilder& out);

// HTML's five special characters as entities; `|escape` and what `safe` texts are joined with.
Value escaped(Heap& heap, const Value& string);

}  // namespace hearth::jinja
