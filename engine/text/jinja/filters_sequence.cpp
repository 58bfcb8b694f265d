// Filters on iterables.
#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/arithmetic.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/compare.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/print.h"
#include "engine/text/jinja/text_tools.h"

namespace hearth::jinja {
namespace sequence_filter {

using Why = Undefined::Why;
using Items = std::span<const Value>;

// A list that is built item by item, its memory charged.
class Collector {
 public:
  explicit Collector(Heap& heap) : heap_(heap) {}
  void add(const Value& value) {
    heap_.budget().step();
    heap_.budget().take_memory(sizeof(Value));
    items_.push_back(value);
  }
  std::vector<Value>& items() { return items_; }
  Value list() { return heap_.list(items_); }
  Value iterator() { return heap_.iterator(list().list->all()); }

 private:
  Heap& heap_;
  std::vector<Value> items_;
};

Value list(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("list", arguments);
  return in.heap().adopt(Kind::kList, iterate(in.heap(), self));
}

Value length(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("length", arguments);
  const auto size = length_of(in.heap(), self);
  if (!size) fail(fmt::format("object of type '{}' has no length", type_name(self)));
  return Value::of(*size);
}

Value first(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("first", arguments);
  if (self.is(Kind::kIterator)) {
    Items& left = self.iterator->left;
    if (left.empty()) return in.heap().undefined(Why::kHint, "there is no first item");
    const Value item = left.front();
    left = left.subspan(1);
    return item;
  }
  if (self.is_string() && self.size > 0) return get_item(in, self, Value::of(std::int64_t{0}));
  const Items items = iterate(in.heap(), self);
  return items.empty() ? in.heap().undefined(Why::kHint, "there is no first item") : items.front();
}

Value last(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("last", arguments);
  if (self.is(Kind::kIterator)) fail(fmt::format("'{}' object is not reversible", type_name(self)));
  if (self.is_string() && self.size > 0) return get_item(in, self, Value::of(std::int64_t{-1}));
  const Items items = iterate(in.heap(), self);
  return items.empty() ? in.heap().undefined(Why::kHint, "there is no last item") : items.back();
}

Value join_filter(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<2> given = bind("join", arguments, {"d", "attribute"});
  Heap& heap = in.heap();
  const Value separator = given[0].given() ? text_of(heap, given[0]) : Value::borrowed("");
  TextBuilder out(heap);
  bool is_first = true;
  for (const Value& item : iterate(heap, self)) {
    if (!std::exchange(is_first, false)) out.append(separator);
    const bool by_attribute = given[1].given() && !given[1].is(Kind::kNone);
    print(heap, by_attribute ? get_path(in, item, given[1]) : item, out);
  }
  return out.finish();
}

Value reverse(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("reverse", arguments);
  Heap& heap = in.heap();
  if (self.is_string()) return get_slice(heap, self, {}, {}, Value::of(std::int64_t{-1}));
  const Items items = iterate(heap, self);
  Value* const reversed = heap.array<Value>(items.size());
  std::ranges::reverse_copy(items, reversed);
  const Value result = heap.adopt(Kind::kList, {reversed, items.size()});
  if (self.is(Kind::kIterator)) return result;
  return heap.iterator(result.list->all(), "list_reverseiterator");
}

Value items(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("items", arguments);
  Heap& heap = in.heap();
  if (self.is(Kind::kUndefined)) return heap.iterator({});
  if (!self.is(Kind::kDict)) fail("can only get item pairs from a mapping");
  Value* const pairs = heap.array<Value>(self.dict->size);
  for (std::uint32_t i = 0; i < self.dict->size; ++i)
    pairs[i] = heap.pair(self.dict->entries[i].key, self.dict->entries[i].value);
  return heap.iterator({pairs, self.dict->size});
}

Value map(Interpreter& in, const Value& self, const Arguments& arguments) {
  Heap& heap = in.heap();
  Collector results(heap);
  if (!is_true(self)) return results.iterator();  // a false value counts as empty
  if (arguments.positional.empty()) {
    const Bound<2> given = bind("map", arguments, {"attribute", "default"});
    if (!given[0].given()) fail("map() needs the name of a filter or an attribute");
    for (const Value& item : iterate(heap, self)) {
      const Value found = get_path(in, item, given[0]);
      results.add(found.is(Kind::kUndefined) && given[1].given() ? given[1] : found);
    }
    return results.iterator();
  }
  const std::string_view name = need_string(arguments.positional[0], "map").view_text();
  const Arguments rest{arguments.positional.subspan(1), arguments.named};
  for (const Value& item : iterate(heap, self)) results.add(in.apply_filter(name, item, rest));
  return results.iterator();
}

// select and reject, of the items themselves or by an attribute.
template <bool by_attribute, bool wanted>
Value select(Interpreter& in, const Value& self, const Arguments& arguments) {
  Heap& heap = in.heap();
  Items given = arguments.positional;
  Value path;
  if (by_attribute) {
    if (given.empty()) fail("selectattr() needs the name of an attribute");
    path = given[0];
    given = given.subspan(1);
  }
  Collector results(heap);
  if (!is_true(self)) return results.iterator();  // a false value counts as empty
  for (const Value& item : iterate(heap, self)) {
    heap.budget().step();
    const Value tested = by_attribute ? get_path(in, item, path) : item;
    const bool passes = given.empty() ? is_true(tested)
                                      : in.apply_test(need_string(given[0], "select").view_text(),
                                                      tested, {given.subspan(1), arguments.named});
    if (passes == wanted) results.add(item);
  }
  return results.iterator();
}

// What items are sorted by: themselves or an attribute, strings without regard to case.
Value sort_key(Interpreter& in, const Value& item, const Value& path, bool case_sensitive) {
  Value key = !path.given() || path.is(Kind::kNone) ? item : get_path(in, item, path);
  if (!case_sensitive && key.is_string()) key = to_lower(in.heap(), key);
  return key;
}

// The places below `count` in ascending or descending order; equal ones stay in place.
using Places = std::span<std::uint32_t>;
template <class Order>
Places sorted_places(Heap& heap, std::size_t count, bool descending, Order order_of) {
  const Places places(heap.array<std::uint32_t>(count), count);
  std::iota(places.begin(), places.end(), 0u);
  std::ranges::stable_sort(places, [&](std::uint32_t a, std::uint32_t b) {
    return descending ? order_of(b, a) < 0 : order_of(a, b) < 0;
  });
  return places;
}

Value pick(Heap& heap, Items items, Places places) {
  Value* const picked = heap.array<Value>(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) picked[i] = items[places[i]];
  return heap.adopt(Kind::kList, {picked, places.size()});
}

Value sort(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<3> given = bind("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  Heap& heap = in.heap();
  const Items all = iterate(heap, self);
  // "a,b" sorts by a, then by b.
  Collector paths(heap);
  if (given[2].is_string()) {
    std::size_t begin = 0;
    const std::string_view text = given[2].view_text();
    heap.budget().handle_bytes(text.size());
    while (begin <= text.size()) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      paths.add(heap.slice(given[2], begin, end));
      begin = end + 1;
    }
  } else {
    paths.add(given[2]);
  }
  Collector keys(heap);
  for (const Value& item : all) {
    Collector key(heap);
    for (const Value& path : paths.items()) key.add(sort_key(in, item, path, is_true(given[1])));
    keys.add(key.items().size() == 1 ? key.items()[0] : key.list());
  }
  const auto places =
      sorted_places(heap, all.size(), is_true(given[0]), [&](std::uint32_t a, std::uint32_t b) {
        return order(heap, keys.items()[a], keys.items()[b]);
      });
  return pick(heap, all, places);
}

Value unique(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<2> given = bind("unique", arguments, {"case_sensitive", "attribute"});
  Heap& heap = in.heap();
  const Items all = iterate(heap, self);
  Collector keys(heap);
  for (const Value& item : all) keys.add(sort_key(in, item, given[1], is_true(given[0])));
  const auto compare = [&](std::uint32_t a, std::uint32_t b) {
    return key_order(heap, keys.items()[a], keys.items()[b]);
  };
  const Places sorted = sorted_places(heap, all.size(), false, compare);
  const auto repeated = std::ranges::unique(
      sorted, [&](std::uint32_t a, std::uint32_t b) { return compare(a, b) == 0; });
  const Places places = sorted.first(sorted.size() - repeated.size());
  std::ranges::sort(places, [&](std::uint32_t a, std::uint32_t b) {
    heap.budget().step();
    return a < b;
  });
  return heap.iterator(pick(heap, all, places).list->all());
}

Value dict_sort(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<3> given = bind("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  Heap& heap = in.heap();
  fail_if_undefined(self);
  if (!self.is(Kind::kDict)) fail("dictsort() needs a dict");
  const std::string_view by =
      given[1].given() ? need_string(given[1], "dictsort").view_text() : "key";
  if (by != "key" && by != "value") fail("dictsort() sorts by 'key' or by 'value'");
  Collector keys(heap), pairs(heap);
  for (const Dict::Entry& entry : self.dict->all()) {
    keys.add(sort_key(in, by == "key" ? entry.key : entry.value, {}, is_true(given[0])));
    pairs.add(heap.pair(entry.key, entry.value));
  }
  const auto places = sorted_places(heap, self.dict->size, is_true(given[2]),
                                    [&](std::uint32_t a, std::uint32_t b) {
                                      return order(heap, keys.items()[a], keys.items()[b]);
                                    });
  return pick(heap, pairs.items(), places);
}

template <int direction>
Value extreme(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<2> given = bind("min", arguments, {"case_sensitive", "attribute"});
  Heap& heap = in.heap();
  const Items all = iterate(heap, self);
  if (all.empty()) return heap.undefined(Why::kHint, "there is no item to compare");
  Value best = all[0], best_key = sort_key(in, best, given[1], is_true(given[0]));
  for (const Value& item : all.subspan(1)) {
    const Value key = sort_key(in, item, given[1], is_true(given[0]));
    if (order(heap, key, best_key) * direction < 0) {
      best = item;
      best_key = key;
    }
  }
  return best;
}

Value sum(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<2> given = bind("sum", arguments, {"attribute", "start"});
  Heap& heap = in.heap();
  Value total = given[1].given() ? given[1] : Value::of(std::int64_t{0});
  const bool by_attribute = given[0].given() && !given[0].is(Kind::kNone);
  for (const Value& item : iterate(heap, self)) {
    heap.budget().step();
    total =
        calculate(heap, Operator::kAdd, total, by_attribute ? get_path(in, item, given[0]) : item);
  }
  return total;
}

Value batch(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<2> given = bind("batch", arguments, {"linecount", "fill_with"}, 1);
  Heap& heap = in.heap();
  const std::int64_t size = need_integer(given[0], "batch");
  if (size < 1) fail("batch() needs a positive size");
  Collector rows(heap);
  Items all = iterate(heap, self);
  while (!all.empty()) {
    const Items row = all.first(std::min<std::size_t>(all.size(), static_cast<std::size_t>(size)));
    all = all.subspan(row.size());
    Collector cells(heap);
    for (const Value& item : row) cells.add(item);
    if (given[1].given() && !given[1].is(Kind::kNone))
      while (std::ssize(cells.items()) < size) cells.add(given[1]);
    rows.add(cells.list());
  }
  return rows.iterator();
}

Value slice(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<2> given = bind("slice", arguments, {"slices", "fill_with"}, 1);
  Heap& heap = in.heap();
  const std::int64_t count = need_integer(given[0], "slice");
  if (count < 1) fail("slice() needs a positive count");
  const Items all = iterate(heap, self);
  const auto size = static_cast<std::int64_t>(all.size());
  Collector columns(heap);
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool has_extra = i < size % count;
    const std::int64_t length = size / count + (has_extra ? 1 : 0);
    Collector cells(heap);
    for (const Value& item :
         all.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(length)))
      cells.add(item);
    begin += length;
    if (given[1].given() && !given[1].is(Kind::kNone) && !has_extra) cells.add(given[1]);
    columns.add(cells.list());
  }
  return columns.iterator();
}

Value group_by(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<3> given = bind("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  Heap& heap = in.heap();
  const Items all = iterate(heap, self);
  Collector names(heap), keys(heap), groups(heap);
  for (const Value& item : all) {
    Value name = get_path(in, item, given[0]);
    if (name.is(Kind::kUndefined) && given[1].given()) name = given[1];
    names.add(name);
    keys.add(sort_key(in, name, {}, is_true(given[2])));
  }
  const auto places = sorted_places(heap, all.size(), false, [&](std::uint32_t a, std::uint32_t b) {
    return order(heap, keys.items()[a], keys.items()[b]);
  });
  for (std::size_t i = 0; i < places.size();) {
    const std::size_t first = i++;  // alone if its key is unequal to itself: nan
    const std::uint32_t leader = places[first];
    while (i < places.size() && equal(heap, keys.items()[places[i]], keys.items()[leader])) ++i;
    const Places members = places.subspan(first, i - first);
    Value group = Value::of(Kind::kTuple);
    const Value both = heap.pair(names.items()[leader], pick(heap, all, members));
    group.list = heap.make(List{both.list->items, 2, true});
    groups.add(group);
  }
  return groups.list();
}

}  // namespace sequence_filter

std::span<const Builtin> sequence_filters() {
  using namespace sequence_filter;
  static constexpr Builtin kTable[] = {
      {"batch", batch},
      {"count", length},
      {"dictsort", dict_sort},
      {"first", first},
      {"groupby", group_by},
      {"items", items},
      {"join", join_filter},
      {"last", last},
      {"length", length},
      {"list", list},
      {"map", map},
      {"max", extreme<-1>},
      {"min", extreme<1>},
      {"reject", select<false, false>},
      {"rejectattr", select<true, false>},
      {"reverse", reverse},
      {"select", select<false, true>},
      {"selectattr", select<true, true>},
      {"slice", slice},
      {"sort", sort},
      {"sum", sum},
      {"unique", unique},
  };
  return kTable;
}

}  // namespace hearth::jinja
