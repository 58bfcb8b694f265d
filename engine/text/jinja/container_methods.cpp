// Methods of lists, tuples and dicts that change nothing, and those of a cycler.
#include <algorithm>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/compare.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/text_tools.h"

namespace hearth::jinja {
namespace container_method {

Value list_count(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("count", arguments, {"value"}, 1);
  std::int64_t count = 0;
  for (const Value& item : iterate(in.heap(), self))
    if (equal(in.heap(), item, given[0])) ++count;
  return Value::of(count);
}

Value list_index(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<3> given = bind("index", arguments, {"value", "start", "stop"}, 1);
  const std::span<const Value> items = iterate(in.heap(), self);
  const auto size = static_cast<std::int64_t>(items.size());
  const auto place = [&](const Value& value, std::int64_t standard) {
    const std::int64_t at = integer_or(value, standard, "index");
    return at < 0 ? std::max<std::int64_t>(0, at + size) : std::min(at, size);
  };
  for (std::int64_t i = place(given[1], 0); i < place(given[2], size); ++i)
    if (equal(in.heap(), items[static_cast<std::size_t>(i)], given[0])) return Value::of(i);
  fail("the value is not in the list");
}

Value list_copy(Interpreter&, const Value& self, const Arguments& arguments) {
  bind_nothing("copy", arguments);
  return self;  // it cannot change
}

template <View::Part part>
Value dict_view(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("items", arguments);
  Value value = Value::of(Kind::kView);
  value.view = in.heap().make(View{part, self.dict});
  return value;
}

Value dict_get(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<2> given = bind("get", arguments, {"key", "default"}, 1);
  const Value* const found = find(in.heap(), *self.dict, given[0]);
  if (found != nullptr) return *found;
  return given[1].given() ? given[1] : Value::none();
}

Object& need_cycler(const Value& self) {
  if (self.object->type != Object::Type::kCycler) fail("a joiner can only be called");
  return *self.object;
}

Value cycler_next(Interpreter&, const Value& self, const Arguments& arguments) {
  bind_nothing("next", arguments);
  Object& cycler = need_cycler(self);
  const Value item = cycler.items[cycler.at];
  cycler.at = static_cast<std::uint32_t>((cycler.at + 1) % cycler.items.size());
  return item;
}

Value cycler_reset(Interpreter&, const Value& self, const Arguments& arguments) {
  bind_nothing("reset", arguments);
  need_cycler(self).at = 0;
  return Value::none();
}

}  // namespace container_method

std::span<const Builtin> container_methods(Kind kind) {
  using namespace container_method;
  static constexpr Builtin kList[] = {
      {"count", list_count}, {"index", list_index}, {"copy", list_copy}};
  static constexpr Builtin kTuple[] = {{"count", list_count}, {"index", list_index}};
  static constexpr Builtin kDict[] = {{"copy", list_copy},
                                      {"get", dict_get},
                                      {"items", dict_view<View::Part::kItems>},
                                      {"keys", dict_view<View::Part::kKeys>},
                                      {"values", dict_view<View::Part::kValues>}};
  static constexpr Builtin kObject[] = {{"next", cycler_next}, {"reset", cycler_reset}};
  switch (kind) {
    case Kind::kList:
      return kList;
    case Kind::kTuple:
      return kTuple;
    case Kind::kDict:
      return kDict;
    case Kind::kObject:
      return kObject;
    default:
      return {};
  }
}

}  // namespace hearth::jinja
