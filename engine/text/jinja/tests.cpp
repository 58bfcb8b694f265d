// What can stand after `is`.
#include <cmath>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/arithmetic.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/compare.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/print.h"
#include "engine/text/jinja/text_tools.h"

namespace hearth::jinja {
namespace test {

// A test that only looks at the value.
template <bool (*passes)(const Value&)>
Value plain(Interpreter&, const Value& self, const Arguments& arguments) {
  bind_nothing("the test", arguments);
  return Value::of(passes(self));
}

bool is_defined(const Value& v) { return !v.is(Kind::kUndefined); }
bool is_undefined(const Value& v) { return v.is(Kind::kUndefined); }
bool is_none(const Value& v) { return v.is(Kind::kNone); }
bool is_boolean(const Value& v) { return v.is(Kind::kBool); }
bool is_really_true(const Value& v) { return v.is(Kind::kBool) && v.boolean; }
bool is_really_false(const Value& v) { return v.is(Kind::kBool) && !v.boolean; }
bool is_integer(const Value& v) { return v.is(Kind::kInt); }
bool is_float(const Value& v) { return v.is(Kind::kFloat); }
bool is_number(const Value& v) { return v.is_number(); }
bool is_text(const Value& v) { return v.is_string(); }
bool is_mapping(const Value& v) { return v.is(Kind::kDict); }
bool is_escaped(const Value& v) { return v.markup; }
bool is_sequence(const Value& v) {
  return v.is_string() || v.is_sequence() || v.is(Kind::kDict) || v.is(Kind::kRange) ||
         v.is(Kind::kUndefined);
}
bool is_iterable(const Value& v) {
  return is_sequence(v) || v.is(Kind::kView) || v.is(Kind::kIterator) || v.is(Kind::kLoop);
}
bool is_callable(const Value& v) {
  return v.is(Kind::kFunction) || v.is(Kind::kLoop) || v.is(Kind::kUndefined) ||
         (v.is(Kind::kObject) && v.object->type == Object::Type::kJoiner);
}

std::int64_t remainder(Interpreter& in, const Value& self, std::int64_t divisor) {
  const Value rest = calculate(in.heap(), Operator::kModulo, self, Value::of(divisor));
  if (rest.is_string()) fail("a string has no remainder");
  // A fraction is neither odd nor even.
  const double number = rest.as_number();
  if (!std::isfinite(number)) return -1;
  const auto whole = static_cast<std::int64_t>(number);
  return number == static_cast<double>(whole) ? whole : -1;
}

Value is_odd(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("odd", arguments);
  return Value::of(remainder(in, self, 2) == 1);
}

Value is_even(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("even", arguments);
  return Value::of(remainder(in, self, 2) == 0);
}

Value divisible(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("divisibleby", arguments, {"num"}, 1);
  return Value::of(remainder(in, self, need_integer(given[0], "divisibleby")) == 0);
}

template <bool wanted>
Value is_equal(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("eq", arguments, {"other"}, 1);
  return Value::of(equal(in.heap(), self, given[0]) == wanted);
}

template <class Passes>
Value compared(Interpreter& in, const Value& self, const Arguments& arguments, Passes passes) {
  const Bound<1> given = bind("the test", arguments, {"other"}, 1);
  return Value::of(passes(order(in.heap(), self, given[0])));
}
Value is_less(Interpreter& in, const Value& self, const Arguments& arguments) {
  return compared(in, self, arguments, [](int o) { return o < 0; });
}
Value is_less_or_equal(Interpreter& in, const Value& self, const Arguments& arguments) {
  return compared(in, self, arguments, [](int o) { return o <= 0; });
}
Value is_greater(Interpreter& in, const Value& self, const Arguments& arguments) {
  return compared(in, self, arguments, [](int o) { return o > 0; });
}
Value is_greater_or_equal(Interpreter& in, const Value& self, const Arguments& arguments) {
  return compared(in, self, arguments, [](int o) { return o >= 0; });
}

Value is_in(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("in", arguments, {"seq"}, 1);
  return Value::of(contains(in.heap(), given[0], self));
}

Value is_same(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("sameas", arguments, {"other"}, 1);
  const Value& other = given[0];
  if (self.kind != other.kind) return Value::of(false);
  switch (self.kind) {
    case Kind::kNone:
      return Value::of(true);
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return Value::of(equal(in.heap(), self, other));
    case Kind::kString:
      return Value::of(self.text == other.text && self.size == other.size);
    default:
      return Value::of(self.object == other.object);
  }
}

template <bool upper>
Value is_cased(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("the test", arguments);
  const Value text = text_of(in.heap(), self);
  return find_method(text, upper ? "isupper" : "islower")->run(in, text, {});
}

Value is_filter_name(Interpreter&, const Value& self, const Arguments& arguments) {
  bind_nothing("filter", arguments);
  return Value::of(self.is_string() && find_filter(self.view_text()) != nullptr);
}

Value is_test_name(Interpreter&, const Value& self, const Arguments& arguments) {
  bind_nothing("test", arguments);
  return Value::of(self.is_string() && find_test(self.view_text()) != nullptr);
}

}  // namespace test

std::span<const Builtin> tests() {
  using namespace test;
  static constexpr Builtin kTable[] = {
      {"!=", is_equal<false>},
      {"<", is_less},
      {"<=", is_less_or_equal},
      {"==", is_equal<true>},
      {">", is_greater},
      {">=", is_greater_or_equal},
      {"boolean", plain<is_boolean>},
      {"callable", plain<is_callable>},
      {"defined", plain<is_defined>},
      {"divisibleby", divisible},
      {"eq", is_equal<true>},
      {"equalto", is_equal<true>},
      {"escaped", plain<is_escaped>},
      {"even", is_even},
      {"false", plain<is_really_false>},
      {"filter", is_filter_name},
      {"float", plain<is_float>},
      {"ge", is_greater_or_equal},
      {"greaterthan", is_greater},
      {"gt", is_greater},
      {"in", is_in},
      {"integer", plain<is_integer>},
      {"iterable", plain<is_iterable>},
      {"le", is_less_or_equal},
      {"lessthan", is_less},
      {"lower", is_cased<false>},
      {"lt", is_less},
      {"mapping", plain<is_mapping>},
      {"ne", is_equal<false>},
      {"none", plain<is_none>},
      {"number", plain<is_number>},
      {"odd", is_odd},
      {"sameas", is_same},
      {"sequence", plain<is_sequence>},
      {"string", plain<is_text>},
      {"test", is_test_name},
      {"true", plain<is_really_true>},
      {"undefined", plain<is_undefined>},
      {"upper", is_cased<true>},
  };
  return kTable;
}

}  // namespace hearth::jinja
