// Functions that every template can call by name.
#include <ctime>
#include <string>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/compare.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/print.h"
#include "engine/text/jinja/text_tools.h"
#include "runtime/rounding.h"

namespace hearth::jinja {
namespace global {

// As Jinja's sandbox has it.
constexpr std::int64_t kMaxRange = 100'000;

Value range(Interpreter& in, const Value&, const Arguments& arguments) {
  const Bound<3> given = bind("range", arguments, {"start", "stop", "step"}, 1);
  const bool only_stop = !given[1].given();
  Range range;
  range.start = only_stop ? 0 : need_integer(given[0], "range");
  range.stop = need_integer(given[only_stop ? 0 : 1], "range");
  range.step = integer_or(given[2], 1, "range");
  if (range.step == 0) fail("range() needs a step other than 0");
  constexpr std::int64_t kFar = std::int64_t{1} << 60;
  for (const std::int64_t number : {range.start, range.stop, range.step})
    if (number > kFar || number < -kFar) fail("range() of a number that is too large");
  const std::int64_t distance =
      range.step > 0 ? range.stop - range.start : range.start - range.stop;
  const std::int64_t stride = range.step > 0 ? range.step : -range.step;
  range.count = distance <= 0 ? 0 : divide_up(distance, stride);
  if (range.count > kMaxRange) fail(fmt::format("range() is longer than {} numbers", kMaxRange));
  Value value = Value::of(Kind::kRange);
  value.range = in.heap().make(range);
  return value;
}

// dict(mapping, name=value) and namespace(mapping, name=value).
Value filled(Interpreter& in, const Arguments& arguments, std::string_view callee, Kind kind) {
  Heap& heap = in.heap();
  if (arguments.positional.size() > 1) fail(fmt::format("{}() takes one mapping", callee));
  const Value made = heap.dict(arguments.named.size(), kind);
  for (const Value& source : arguments.positional) {
    if (source.is(Kind::kDict)) {
      for (const Dict::Entry& entry : source.dict->all())
        heap.append(*made.dict, entry.key, entry.value);
      continue;
    }
    for (const Value& pair : iterate(heap, source)) {
      const auto both = iterate(heap, pair);
      if (both.size() != 2) fail(fmt::format("{}() needs pairs of keys and values", callee));
      set(heap, *made.dict, both[0], both[1]);
    }
  }
  for (const NamedValue& named : arguments.named)
    set(heap, *made.dict, Value::borrowed(named.name), named.value);
  return made;
}

Value dict(Interpreter& in, const Value&, const Arguments& arguments) {
  return filled(in, arguments, "dict", Kind::kDict);
}

Value make_namespace(Interpreter& in, const Value&, const Arguments& arguments) {
  return filled(in, arguments, "namespace", Kind::kNamespace);
}

Value cycler(Interpreter& in, const Value&, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty())
    fail("cycler() needs items to cycle through");
  Value value = Value::of(Kind::kObject);
  value.object = in.heap().make(Object{.type = Object::Type::kCycler,
                                       .items = in.heap().list(arguments.positional).list->all()});
  return value;
}

Value joiner(Interpreter& in, const Value&, const Arguments& arguments) {
  const Bound<1> given = bind("joiner", arguments, {"sep"});
  Value value = Value::of(Kind::kObject);
  value.object =
      in.heap().make(Object{.type = Object::Type::kJoiner,
                            .separator = given[0].given() ? given[0] : Value::borrowed(", ")});
  return value;
}

Value raise(Interpreter& in, const Value&, const Arguments& arguments) {
  const Bound<1> given = bind("raise_exception", arguments, {"message"}, 1);
  fail(std::string(excerpt(text_of(in.heap(), given[0]).view_text())));
}

Value time_text(Interpreter& in, const Value&, const Arguments& arguments) {
  const Bound<1> given = bind("strftime_now", arguments, {"format"}, 1);
  // A last character that is never empty tells an empty result from a buffer too small.
  const std::string form(need_string(given[0], "strftime_now").view_text());
  if (form.size() > 1000) fail("strftime_now() needs a shorter format");
  std::tm parts{};
  const std::time_t now = in.now();
  localtime_r(&now, &parts);
  std::string text(64 * (form.size() + 1), '\0');
  in.budget().handle_bytes(text.size());
  const std::size_t size = std::strftime(text.data(), text.size(), (form + "|").c_str(), &parts);
  if (size == 0) fail("strftime_now() needs a shorter format");
  return in.heap().string(std::string_view(text).substr(0, size - 1),
                          given[0].has_input() ? Origin::kInput : Origin::kTemplate);
}

Value lipsum(Interpreter&, const Value&, const Arguments&) {
  fail("lipsum() is not supported in chat templates");
}

}  // namespace global

std::span<const Builtin> globals() {
  using namespace global;
  static constexpr Builtin kTable[] = {
      {"cycler", cycler},         {"dict", dict},
      {"joiner", joiner},         {"lipsum", lipsum},
      {"range", range},           {"namespace", make_namespace},
      {"raise_exception", raise}, {"strftime_now", time_text},
  };
  return kTable;
}

}  // namespace hearth::jinja
