// The functions a template can call: filters, tests, globals and methods. Each is a plain C++
// function in one of the tables below; nothing else can be reached from a template.
#pragma once

#include <span>
#include <string_view>

#include "engine/text/jinja/value.h"

namespace hearth::jinja {

class Interpreter;

struct NamedValue {
  std::string_view name;
  Value value;
};

struct Arguments {
  std::span<const Value> positional;
  std::span<const NamedValue> named;
};

// `self` is what a filter or test is applied to, or what a method belongs to.
using BuiltinFunction = Value (*)(Interpreter&, const Value& self, const Arguments&);

struct Builtin {
  std::string_view name;
  BuiltinFunction run = nullptr;
};

// Null where there is none of that name.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
std::span<const Builtin> globals();
// Of this value's type.
const Builtin* find_method(const Value& value, std::string_view name);
// Whether Python's type has a method of this name that changes the value, which is refused.
bool is_mutating_method(const Value& value, std::string_view name);

// The tables, one per file.
std::span<const Builtin> text_filters();
std::span<const Builtin> sequence_filters();
std::span<const Builtin> value_filters();
std::span<const Builtin> tests();
std::span<const Builtin> string_methods();
std::span<const Builtin> string_questions();  // str.isdigit() and its kin
std::span<const Builtin> container_methods(Kind kind);

// Sorts arguments into parameters, Python's way. What was not given is kMissing; the first
// `required` must be given. REQUIRES: values.size() == names.size()
void bind_arguments(std::string_view callee, const Arguments& arguments,
                    std::span<const std::string_view> names, std::size_t required,
                    std::span<Value> values);

template <std::size_t N>
struct Bound {
  Value values[N == 0 ? 1 : N];
  const Value& operator[](std::size_t i) const { return values[i]; }
};

template <std::size_t N>
Bound<N> bind(std::string_view callee, const Arguments& arguments,
              const std::string_view (&names)[N], std::size_t required = 0) {
  Bound<N> bound;
  bind_arguments(callee, arguments, names, required, bound.values);
  return bound;
}
void bind_nothing(std::string_view callee, const Arguments& arguments);

}  // namespace hearth::jinja
