#include "engine/text/jinja/access.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/compare.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/loop.h"
#include "engine/text/jinja/print.h"
#include "runtime/rounding.h"

namespace hearth::jinja {
namespace {

using Why = Undefined::Why;

// What Python's attribute lookup finds, apart from entries of a dict; kMissing: nothing.
Value find_attribute(Interpreter& in, const Value& value, std::string_view name) {
  switch (value.kind) {
    case Kind::kNamespace:
      if (const Value* const found = find(in.heap(), *value.dict, name)) return *found;
      return {};
    case Kind::kLoop:
      return value.loop->attribute(in, value, name);
    case Kind::kTuple:
      if (value.list->is_group && name == "grouper") return value.list->items[0];
      if (value.list->is_group && name == "list") return value.list->items[1];
      break;
    case Kind::kObject:
      if (name == "current" && value.object->type == Object::Type::kCycler)
        return value.object->items[value.object->at];
      break;
    case Kind::kFunction:
      if (name == "name") return Value::borrowed(value.function->name);
      return {};
    default:
      break;
  }
  if (const Builtin* const found = find_method(value, name)) return in.method(*found, value);
  if (is_mutating_method(value, name) || name.starts_with("__"))
    return in.heap().undefined(Why::kUnsafe, name, type_name(value));
  return {};
}

std::int64_t index_of(const Value& value, std::string_view what) {
  if (!value.is_integer())
    fail(fmt::format("{} must be an integer, not '{}'", what, type_name(value)));
  return value.as_integer();
}

// One character of a string, by its place; kMissing where it is too short.
Value character_of(Heap& heap, const Value& string, std::int64_t index) {
  const std::string_view text = string.view_text();
  if (index < 0) index += static_cast<std::int64_t>(count_characters(heap.budget(), text));
  if (index < 0) return {};
  const std::size_t at = byte_of_character(heap.budget(), text, static_cast<std::size_t>(index));
  if (at >= text.size()) return {};
  return heap.slice(string, at, at + character_at(text, at).bytes);
}

Value find_item(Interpreter& in, const Value& value, const Value& key) {
  Heap& heap = in.heap();
  switch (value.kind) {
    case Kind::kDict: {
      const bool can_be_key =
          key.is_string() || key.is_number() || key.is(Kind::kNone) || key.is(Kind::kTuple);
      const Value* const found = can_be_key ? find(heap, *value.dict, key) : nullptr;
      return found != nullptr ? *found : Value();
    }
    case Kind::kList:
    case Kind::kTuple: {
      if (!key.is_integer()) return {};
      std::int64_t index = key.as_integer();
      if (index < 0) index += value.list->size;
      const bool inside = index >= 0 && index < value.list->size;
      return inside ? value.list->items[index] : Value();
    }
    case Kind::kRange: {
      if (!key.is_integer()) return {};
      std::int64_t index = key.as_integer();
      if (index < 0) index += value.range->count;
      return index >= 0 && index < value.range->count ? value.range->at(index) : Value();
    }
    case Kind::kString:
      return key.is_integer() ? character_of(heap, value, key.as_integer()) : Value();
    default:
      return {};
  }
}

// What a slice picks: `count` places from `start` on, `step` apart.
struct Picked {
  std::int64_t start = 0, step = 1, count = 0;
};

Picked pick(std::int64_t size, const Value& begin, const Value& end, const Value& step_value) {
  const auto is_left_out = [](const Value& v) { return !v.given() || v.is(Kind::kNone); };
  Picked picked;
  if (!is_left_out(step_value)) picked.step = index_of(step_value, "a slice's step");
  if (picked.step == 0) fail("slice step cannot be zero");
  // Beyond the size all steps pick the same.
  picked.step = std::clamp<std::int64_t>(picked.step, -size - 1, size + 1);
  const bool forward = picked.step > 0;
  const auto place = [&](const Value& value, std::int64_t standard) {
    if (is_left_out(value)) return standard;
    std::int64_t at = index_of(value, "a slice's index");
    if (at < 0) at = std::max(at, -size - 1) + size;
    return std::clamp<std::int64_t>(at, forward ? 0 : -1, forward ? size : size - 1);
  };
  picked.start = place(begin, forward ? 0 : size - 1);
  const std::int64_t stop = place(end, forward ? size : -1);
  const std::int64_t distance = forward ? stop - picked.start : picked.start - stop;
  const std::int64_t stride = forward ? picked.step : -picked.step;
  if (distance > 0) picked.count = divide_up(distance, stride);
  return picked;
}

Value slice_string(Heap& heap, const Value& value, const Value& begin, const Value& end,
                   const Value& step) {
  const std::string_view text = value.view_text();
  Budget& budget = heap.budget();
  const Picked picked =
      pick(static_cast<std::int64_t>(count_characters(budget, text)), begin, end, step);
  if (picked.count <= 0) return heap.slice(value, 0, 0);
  if (picked.step == 1) {
    const std::size_t first =
        byte_of_character(budget, text, static_cast<std::size_t>(picked.start));
    const std::size_t bytes =
        byte_of_character(budget, text.substr(first), static_cast<std::size_t>(picked.count));
    return heap.slice(value, first, first + bytes);
  }
  const std::span<const Value> characters = iterate(heap, value);
  TextBuilder out(heap);
  for (std::int64_t i = 0; i < picked.count; ++i)
    out.append(characters[static_cast<std::size_t>(picked.start + i * picked.step)]);
  Value result = out.finish();
  result.markup = value.markup;
  return result;
}

std::span<const Value> characters_of(Heap& heap, const Value& string) {
  const std::string_view text = string.view_text();
  const std::size_t count = count_characters(heap.budget(), text);
  Value* const items = heap.array<Value>(count);
  Meter meter(heap.budget());
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    meter.reach(at);
    const std::size_t bytes = character_at(text, at).bytes;
    items[i] = heap.slice(string, at, at + bytes);
    at += bytes;
  }
  return {items, count};
}

std::span<const Value> entries_of(Heap& heap, const Dict& dict, View::Part part) {
  Value* const items = heap.array<Value>(dict.size);
  for (std::uint32_t i = 0; i < dict.size; ++i) {
    const Dict::Entry& entry = dict.entries[i];
    items[i] = part == View::Part::kKeys     ? entry.key
               : part == View::Part::kValues ? entry.value
                                             : heap.pair(entry.key, entry.value);
  }
  return {items, dict.size};
}

}  // namespace

Value get_attribute(Interpreter& in, const Value& value, std::string_view name) {
  fail_if_undefined(value);
  if (const Value found = find_attribute(in, value, name); found.given()) return found;
  if (value.is(Kind::kDict))
    if (const Value* const found = find(in.heap(), *value.dict, name)) return *found;
  return in.heap().undefined(Why::kAttribute, name, type_name(value));
}

Value get_item(Interpreter& in, const Value& value, const Value& key) {
  fail_if_undefined(value);
  if (const Value found = find_item(in, value, key); found.given()) return found;
  if (key.is_string()) {
    if (const Value found = find_attribute(in, value, key.view_text()); found.given()) return found;
    return in.heap().undefined(Why::kAttribute, key.view_text(), type_name(value));
  }
  return in.heap().undefined(Why::kElement, repr_of(in.heap(), key).view_text(), type_name(value));
}

Value get_path(Interpreter& in, const Value& value, const Value& path) {
  if (!path.is_string()) return get_item(in, value, path);
  Value found = value;
  std::string_view rest = path.view_text();
  in.budget().handle_bytes(rest.size());
  while (true) {
    const std::string_view part = rest.substr(0, rest.find('.'));
    std::int64_t index = 0;
    const auto read = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = !part.empty() && part[0] != '-' && read.ec == std::errc() &&
                          read.ptr == part.data() + part.size();
    found = get_item(in, found, is_index ? Value::of(index) : Value::borrowed(part));
    if (part.size() == rest.size()) return found;
    rest.remove_prefix(part.size() + 1);
  }
}

Value get_slice(Heap& heap, const Value& value, const Value& begin, const Value& end,
                const Value& step) {
  fail_if_undefined(value);
  switch (value.kind) {
    case Kind::kString:
      return slice_string(heap, value, begin, end, step);
    case Kind::kList:
    case Kind::kTuple: {
      const Picked picked = pick(value.list->size, begin, end, step);
      const auto count = static_cast<std::size_t>(std::max<std::int64_t>(0, picked.count));
      Value* const items = heap.array<Value>(count);
      for (std::size_t i = 0; i < count; ++i)
        items[i] = value.list->items[picked.start + static_cast<std::int64_t>(i) * picked.step];
      return heap.adopt(value.kind, {items, count});
    }
    case Kind::kRange: {
      const Picked picked = pick(value.range->count, begin, end, step);
      // The numbers fit: range() keeps below 2^60, and `picked` stays within the count. A slice of
      // a slice may not, because a range of one number can have any step.
      Range range{.count = std::max<std::int64_t>(0, picked.count)};
      std::int64_t length = 0;
      range.start = value.range->start + picked.start * value.range->step;
      if (__builtin_mul_overflow(value.range->step, picked.step, &range.step) ||
          __builtin_mul_overflow(range.count, range.step, &length) ||
          __builtin_add_overflow(range.start, length, &range.stop))
        fail("a number is too large");
      Value result = Value::of(Kind::kRange);
      result.range = heap.make(range);
      return result;
    }
    default:
      fail(fmt::format("'{}' object cannot be sliced", type_name(value)));
  }
}

std::span<const Value> iterate(Heap& heap, const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      if (value.undefined->why == Why::kUnsafe) fail_if_undefined(value);
      return {};
    case Kind::kList:
    case Kind::kTuple:
      return value.list->all();
    case Kind::kString:
      return characters_of(heap, value);
    case Kind::kDict:
      return entries_of(heap, *value.dict, View::Part::kKeys);
    case Kind::kView:
      return entries_of(heap, *value.view->dict, value.view->part);
    case Kind::kRange: {
      const auto count = static_cast<std::size_t>(value.range->count);
      Value* const items = heap.array<Value>(count);
      for (std::size_t i = 0; i < count; ++i)
        items[i] = value.range->at(static_cast<std::int64_t>(i));
      return {items, count};
    }
    case Kind::kIterator:
      return std::exchange(value.iterator->left, {});
    default:
      fail(fmt::format("'{}' object is not iterable", type_name(value)));
  }
}

std::optional<std::int64_t> length_of(Heap& heap, const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return static_cast<std::int64_t>(count_characters(heap.budget(), value.view_text()));
    case Kind::kList:
    case Kind::kTuple:
      return value.list->size;
    case Kind::kDict:
      return value.dict->size;
    case Kind::kView:
      return value.view->dict->size;
    case Kind::kRange:
      return value.range->count;
    default:
      return {};
  }
}

std::string reason_of(const Undefined& undefined) {
  const std::string_view name = excerpt(undefined.name);
  switch (undefined.why) {
    case Why::kName:
      return fmt::format("'{}' is undefined", name);
    case Why::kAttribute:
      return fmt::format("'{} object' has no attribute '{}'", undefined.type, name);
    case Why::kElement:
      return fmt::format("{} object has no element {}", undefined.type, name);
    case Why::kUnsafe:
      if (name.starts_with("__"))
        return fmt::format("'{}' of a {} is private", name, undefined.type);
      return fmt::format("'{}' would change a {}, and chat templates may not change values", name,
                         undefined.type);
    case Why::kHint:
      break;
  }
  return std::string(name);
}

void fail_if_undefined(const Value& value) {
  if (value.is(Kind::kUndefined)) fail(reason_of(*value.undefined));
}

}  // namespace hearth::jinja
