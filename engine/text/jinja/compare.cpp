#include "engine/text/jinja/compare.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/search.h"

namespace hearth::jinja {
namespace {

constexpr std::uint32_t kMaxScanned = 8;

int sign_of(auto a, auto b) { return a < b ? -1 : b < a ? 1 : 0; }

int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return sign_of(a.as_integer(), b.as_integer());
  return sign_of(a.as_number(), b.as_number());
}

// UTF-8 sorts as its code points do.
int compare_text(Heap& heap, const Value& a, const Value& b) {
  heap.budget().handle_bytes(std::min(a.size, b.size));
  return a.view_text().compare(b.view_text());
}

void sort_keys(Heap& heap, Dict& dict) {
  heap.budget().step(dict.size);
  dict.order = heap.array<std::uint32_t>(dict.size);
  const std::span<std::uint32_t> all(dict.order, dict.size);
  std::iota(all.begin(), all.end(), 0u);
  std::ranges::stable_sort(all, [&](std::uint32_t a, std::uint32_t b) {
    return key_order(heap, dict.entries[a].key, dict.entries[b].key) < 0;
  });
  dict.ordered = dict.size;
}

[[noreturn]] void no_order(const Value& a, const Value& b, std::string_view op) {
  fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", op, type_name(a),
                   type_name(b)));
}

bool equal_dicts(Heap& heap, Dict& a, Dict& b) {
  if (a.size != b.size) return false;
  for (const Dict::Entry& entry : a.all()) {
    const Value* const other = find(heap, b, entry.key);
    if (other == nullptr || !equal(heap, entry.value, *other)) return false;
  }
  return true;
}

}  // namespace

int key_order(Heap& heap, const Value& a, const Value& b) {
  const auto rank = [](const Value& key) {
    if (key.is_number()) return 0;
    if (key.is(Kind::kNone)) return 1;
    if (key.is_string()) return 2;
    if (key.is(Kind::kTuple)) return 3;
    fail(fmt::format("a value of type '{}' cannot be a key", type_name(key)));
  };
  heap.budget().step();
  const int rank_a = rank(a), rank_b = rank(b);
  if (rank_a != rank_b) return rank_a - rank_b;
  switch (rank_a) {
    case 0: {
      const bool a_is_nan = std::isnan(a.as_number()), b_is_nan = std::isnan(b.as_number());
      if (a_is_nan || b_is_nan) return sign_of(a_is_nan, b_is_nan);
      return compare_numbers(a, b);
    }
    case 1:
      return 0;
    case 2:
      return compare_text(heap, a, b);
    default:
      break;
  }
  const Nested nested(heap.budget());
  const std::uint32_t shared = std::min(a.list->size, b.list->size);
  for (std::uint32_t i = 0; i < shared; ++i)
    if (const int result = key_order(heap, a.list->items[i], b.list->items[i]); result != 0)
      return result;
  return sign_of(a.list->size, b.list->size);
}

bool equal(Heap& heap, const Value& a, const Value& b) {
  heap.budget().step();
  if (a.is_number() && b.is_number())
    return compare_numbers(a, b) == 0 && a.as_number() == b.as_number();
  if (a.kind != b.kind) return false;
  const Nested nested(heap.budget());
  switch (a.kind) {
    case Kind::kString:
      return a.size == b.size && compare_text(heap, a, b) == 0;
    case Kind::kList:
    case Kind::kTuple:
      if (a.list == b.list) return true;
      return std::ranges::equal(a.list->all(), b.list->all(),
                                [&](const Value& x, const Value& y) { return equal(heap, x, y); });
    case Kind::kDict:
      return a.dict == b.dict || equal_dicts(heap, *a.dict, *b.dict);
    case Kind::kRange:
      return a.range->count == b.range->count &&
             (a.range->count == 0 || (a.range->start == b.range->start &&
                                      (a.range->count == 1 || a.range->step == b.range->step)));
    case Kind::kNone:
    case Kind::kUndefined:
      return true;
    default:
      return a.object == b.object;
  }
}

int order(Heap& heap, const Value& a, const Value& b, std::string_view op) {
  heap.budget().step();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  fail_if_undefined(a);
  fail_if_undefined(b);
  if (a.kind != b.kind) no_order(a, b, op);
  if (a.is_string()) return compare_text(heap, a, b);
  if (!a.is_sequence()) no_order(a, b, op);
  const Nested nested(heap.budget());
  const std::uint32_t shared = std::min(a.list->size, b.list->size);
  for (std::uint32_t i = 0; i < shared; ++i)
    if (!equal(heap, a.list->items[i], b.list->items[i]))
      return order(heap, a.list->items[i], b.list->items[i], op);
  return sign_of(a.list->size, b.list->size);
}

bool contains(Heap& heap, const Value& container, const Value& item) {
  switch (container.kind) {
    case Kind::kString:
      if (!item.is_string())
        fail(fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
      return Finder(heap, item.view_text()).find(container.view_text(), 0) !=
             std::string_view::npos;
    case Kind::kDict:
      return find(heap, *container.dict, item) != nullptr;
    case Kind::kRange:
      if (item.is_number() && container.range->count > 0) {
        const double index = (item.as_number() - static_cast<double>(container.range->start)) /
                             static_cast<double>(container.range->step);
        return index >= 0 && index < static_cast<double>(container.range->count) &&
               index == static_cast<double>(static_cast<std::int64_t>(index));
      }
      return false;
    default:
      for (const Value& each : iterate(heap, container))
        if (equal(heap, each, item)) return true;
      return false;
  }
}

Value* find(Heap& heap, Dict& dict, const Value& key) {
  if (dict.size <= kMaxScanned) {
    heap.budget().step();
    (void)key_order(heap, key, key);  // fails for what cannot be a key
    for (Dict::Entry& entry : dict.all())
      if (equal(heap, entry.key, key)) return &entry.value;
    return nullptr;
  }
  if (dict.ordered < dict.size) sort_keys(heap, dict);
  heap.budget().step();
  const std::span<const std::uint32_t> all(dict.order, dict.ordered);
  const auto at = std::ranges::partition_point(
      all, [&](std::uint32_t index) { return key_order(heap, dict.entries[index].key, key) < 0; });
  if (at == all.end() || key_order(heap, dict.entries[*at].key, key) != 0) return nullptr;
  return &dict.entries[*at].value;
}

Value* find(Heap& heap, Dict& dict, std::string_view key) {
  return find(heap, dict, Value::borrowed(key));
}

void set(Heap& heap, Dict& dict, const Value& key, const Value& value) {
  if (Value* const there = find(heap, dict, key)) {
    *there = value;
  } else {
    heap.append(dict, key, value);
  }
}

}  // namespace hearth::jinja
