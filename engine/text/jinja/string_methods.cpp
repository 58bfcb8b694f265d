// Methods of str.
#include <algorithm>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/compare.h"
#include "engine/text/jinja/format.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/search.h"
#include "engine/text/jinja/text_tools.h"

namespace hearth::jinja {
namespace string_method {

Value list_of(Interpreter& in, const std::vector<Value>& items) { return in.heap().list(items); }

template <Side side>
Value strip_method(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("strip", arguments, {"chars"});
  return strip(in.heap(), self, given[0], side);
}

// Between runs of white space, at most `limit` times.
std::vector<Value> split_space(Heap& heap, const Value& self, std::int64_t limit, bool from_right) {
  Meter meter(heap.budget());
  std::vector<Value> parts;
  Value rest = strip(heap, self, {}, from_right ? Side::kRight : Side::kLeft);
  while (rest.size > 0) {
    heap.budget().step();
    const std::string_view left = rest.view_text();
    if (limit-- == 0) {
      parts.push_back(rest);  // its far end keeps its white space
      break;
    }
    std::size_t at = from_right ? left.size() : 0;
    if (from_right) {
      while (at > 0) {
        meter.reach(self.size - at);
        const Character last = character_before(left, at);
        if (is_space(last.code)) break;
        at -= last.bytes;
      }
      parts.push_back(heap.slice(rest, at, left.size()));
      rest = strip(heap, heap.slice(rest, 0, at), {}, Side::kRight);
    } else {
      while (at < left.size()) {
        meter.reach(self.size - left.size() + at);
        const Character next = character_at(left, at);
        if (is_space(next.code)) break;
        at += next.bytes;
      }
      parts.push_back(heap.slice(rest, 0, at));
      rest = strip(heap, heap.slice(rest, at, left.size()), {}, Side::kLeft);
    }
    heap.budget().take_memory(sizeof(Value));
  }
  if (from_right) std::ranges::reverse(parts);
  return parts;
}

// Places where `separator` stands, without overlaps, the first or last `limit` of them.
std::vector<std::size_t> separators(Heap& heap, std::string_view text, std::string_view separator,
                                    std::int64_t limit, bool from_right) {
  std::vector<std::size_t> places;
  if (!from_right) {
    Finder finder(heap, separator);
    for (std::size_t at = 0; limit != 0; --limit) {
      at = finder.find(text, at);
      if (at == Finder::npos) break;
      heap.budget().take_memory(sizeof(std::size_t));
      places.push_back(at);
      at += separator.size();
    }
    return places;
  }
  const std::vector<std::uint32_t> all = Finder(heap, separator).find_all(text);
  std::size_t end = text.size();
  for (auto at = all.rbegin(); at != all.rend() && limit != 0; ++at) {
    if (*at + separator.size() > end) continue;
    places.push_back(end = *at);
    --limit;
  }
  std::ranges::reverse(places);
  return places;
}

template <bool from_right>
Value split(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<2> given = bind("split", arguments, {"sep", "maxsplit"});
  const std::int64_t limit = integer_or(given[1], -1, "split");
  Heap& heap = in.heap();
  if (!given[0].given() || given[0].is(Kind::kNone))
    return list_of(in, split_space(heap, self, limit, from_right));
  const std::string_view separator = need_string(given[0], "split").view_text();
  if (separator.empty()) fail("empty separator");
  std::vector<Value> parts;
  std::size_t begin = 0;
  for (const std::size_t at : separators(heap, self.view_text(), separator, limit, from_right)) {
    heap.budget().take_memory(sizeof(Value));
    parts.push_back(heap.slice(self, begin, at));
    begin = at + separator.size();
  }
  parts.push_back(heap.slice(self, begin, self.size));
  return list_of(in, parts);
}

template <bool from_right>
Value partition(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("partition", arguments, {"sep"}, 1);
  const Value separator = need_string(given[0], "partition");
  if (separator.size == 0) fail("empty separator");
  Heap& heap = in.heap();
  const auto at = separators(heap, self.view_text(), separator.view_text(), 1, from_right);
  const Value empty = Value::borrowed("");
  if (at.empty()) {
    const Value none[] = {from_right ? empty : self, empty, from_right ? self : empty};
    return heap.tuple(none);
  }
  const Value parts[] = {heap.slice(self, 0, at[0]),
                         heap.slice(self, at[0], at[0] + separator.size),
                         heap.slice(self, at[0] + separator.size, self.size)};
  return heap.tuple(parts);
}

// The part of the string that the optional arguments `start` and `end` leave, and its first byte.
struct Window {
  std::string_view text;
  std::size_t begin = 0;
  bool is_valid = true;  // false: it starts after its end, or after the string's
};

Window window(Heap& heap, const Value& self, const Value& start, const Value& end) {
  if (!start.given() && !end.given()) return {self.view_text()};
  const Value part = get_slice(heap, self, start, end, {});
  const std::int64_t length = *length_of(heap, self);
  const auto place = [&](const Value& given, std::int64_t otherwise) {
    if (!given.given() || !given.is_integer()) return otherwise;
    const std::int64_t at = given.as_integer();
    return at < 0 ? std::max<std::int64_t>(0, at + length) : at;
  };
  const std::int64_t first = place(start, 0);
  if (first > std::min(place(end, length), length)) return {.text = {}, .is_valid = false};
  // An empty slice need not point into the string, so its place is counted.
  return {part.view_text(),
          byte_of_character(heap.budget(), self.view_text(), static_cast<std::size_t>(first))};
}

// Whether one of a tuple of strings, or one string, passes.
template <class Passes>
Value any_of(Budget& budget, const Value& wanted, std::string_view callee, Passes passes) {
  const auto one_passes = [&](const Value& value) {
    const std::string_view text = need_string(value, callee).view_text();
    budget.handle_bytes(text.size());
    return passes(text);
  };
  if (!wanted.is(Kind::kTuple)) return Value::of(one_passes(wanted));
  return Value::of(std::ranges::any_of(wanted.list->all(), one_passes));
}

Value starts_with(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<3> given = bind("startswith", arguments, {"prefix", "start", "end"}, 1);
  const Window part = window(in.heap(), self, given[1], given[2]);
  return any_of(in.budget(), given[0], "startswith", [&](std::string_view text) {
    return part.is_valid && part.text.starts_with(text);
  });
}

Value ends_with(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<3> given = bind("endswith", arguments, {"suffix", "start", "end"}, 1);
  const Window part = window(in.heap(), self, given[1], given[2]);
  return any_of(in.budget(), given[0], "endswith",
                [&](std::string_view text) { return part.is_valid && part.text.ends_with(text); });
}

// The index of a character, or -1.
std::int64_t find_in(Heap& heap, const Value& self, const Arguments& arguments, bool last) {
  const Bound<3> given = bind("find", arguments, {"sub", "start", "end"}, 1);
  const std::string_view wanted = need_string(given[0], "find").view_text();
  const Window part = window(heap, self, given[1], given[2]);
  if (!part.is_valid) return -1;
  Finder finder(heap, wanted);
  std::size_t at = Finder::npos;
  if (!last) {
    at = finder.find(part.text, 0);
  } else if (wanted.empty()) {
    at = part.text.size();
  } else {
    at = finder.find_last(part.text);
  }
  if (at == Finder::npos) return -1;
  const std::string_view before = self.view_text().substr(0, part.begin + at);
  return static_cast<std::int64_t>(count_characters(heap.budget(), before));
}

template <bool last>
Value find_method(Interpreter& in, const Value& self, const Arguments& arguments) {
  return Value::of(find_in(in.heap(), self, arguments, last));
}

template <bool last>
Value index_method(Interpreter& in, const Value& self, const Arguments& arguments) {
  const std::int64_t index = find_in(in.heap(), self, arguments, last);
  if (index < 0) fail("substring not found");
  return Value::of(index);
}

Value count(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<3> given = bind("count", arguments, {"sub", "start", "end"}, 1);
  const std::string_view wanted = need_string(given[0], "count").view_text();
  const Window part = window(in.heap(), self, given[1], given[2]);
  if (!part.is_valid) return Value::of(std::int64_t{0});
  if (wanted.empty())
    return Value::of(static_cast<std::int64_t>(count_characters(in.budget(), part.text)) + 1);
  Finder finder(in.heap(), wanted);
  std::int64_t found = 0;
  for (std::size_t at = 0; (at = finder.find(part.text, at)) != Finder::npos; at += wanted.size())
    ++found;
  return Value::of(found);
}

Value replace_method(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<3> given = bind("replace", arguments, {"old", "new", "count"}, 2);
  return replace(in.heap(), self, need_string(given[0], "replace"),
                 need_string(given[1], "replace"), integer_or(given[2], -1, "replace"));
}

Value join_method(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("join", arguments, {"iterable"}, 1);
  const std::span<const Value> items = iterate(in.heap(), given[0]);
  for (const Value& item : items) (void)need_string(item, "join");
  return join(in.heap(), self, items);
}

Value lower(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("lower", arguments);
  return to_lower(in.heap(), self);
}

Value upper(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("upper", arguments);
  return to_upper(in.heap(), self);
}

Value capitalize_method(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("capitalize", arguments);
  return capitalize(in.heap(), self);
}

// Character by character, knowing whether the one before it was a letter.
template <class Change>
Value change_case(Heap& heap, const Value& self, Change change) {
  TextBuilder out(heap);
  bool behind_letter = false;
  for (const Value& character : iterate(heap, self)) {
    const char32_t code = character_at(character.view_text(), 0).code;
    out.append(code == kNoCode ? character : change(character, code, behind_letter));
    behind_letter = code != kNoCode && is_alpha(code);
  }
  return out.finish();
}

Value title(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("title", arguments);
  Heap& heap = in.heap();
  return change_case(heap, self, [&](const Value& character, char32_t, bool behind_letter) {
    return behind_letter ? to_lower(heap, character) : capitalize(heap, character);
  });
}

Value swapcase(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("swapcase", arguments);
  Heap& heap = in.heap();
  return change_case(heap, self, [&](const Value& character, char32_t code, bool) {
    return is_upper(code) ? to_lower(heap, character) : to_upper(heap, character);
  });
}

Value splitlines(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("splitlines", arguments, {"keepends"});
  return list_of(in, split_lines(in.heap(), self, is_true(given[0])));
}

Value remove_prefix(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("removeprefix", arguments, {"prefix"}, 1);
  const std::string_view prefix = need_string(given[0], "removeprefix").view_text();
  in.budget().handle_bytes(prefix.size());
  const bool starts = self.view_text().starts_with(prefix);
  return starts ? in.heap().slice(self, prefix.size(), self.size) : self;
}

Value remove_suffix(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("removesuffix", arguments, {"suffix"}, 1);
  const std::string_view suffix = need_string(given[0], "removesuffix").view_text();
  in.budget().handle_bytes(suffix.size());
  const bool ends = self.view_text().ends_with(suffix);
  return ends ? in.heap().slice(self, 0, self.size - suffix.size()) : self;
}

template <Side side>
Value justify(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<2> given = bind("justify", arguments, {"width", "fillchar"}, 1);
  const Value fill = given[1].given() ? need_string(given[1], "justify") : Value::borrowed(" ");
  if (count_characters(in.budget(), fill.view_text()) != 1)
    fail("the fill character must be exactly one character long");
  return pad(in.heap(), self, need_integer(given[0], "justify"), fill, side);
}

Value zfill(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("zfill", arguments, {"width"}, 1);
  Heap& heap = in.heap();
  const std::string_view text = self.view_text();
  const std::size_t sign = text.starts_with('+') || text.starts_with('-') ? 1 : 0;
  const std::int64_t width = need_integer(given[0], "zfill");
  const Value digits = pad(heap, heap.slice(self, sign, self.size),
                           std::max<std::int64_t>(width, 1) - static_cast<std::int64_t>(sign),
                           Value::borrowed("0"), Side::kLeft);
  const Value parts[] = {heap.slice(self, 0, sign), digits};
  return join(heap, Value::borrowed(""), parts);
}

Value expandtabs(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("expandtabs", arguments, {"tabsize"});
  const std::int64_t size = integer_or(given[0], 8, "expandtabs");
  TextBuilder out(in.heap());
  std::int64_t column = 0;
  for (const Value& character : iterate(in.heap(), self)) {
    const char c = character.text[0];
    if (c == '\t') {
      const std::int64_t spaces = size <= 0 ? 0 : size - column % size;
      for (std::int64_t i = 0; i < spaces; ++i) out.append(" ", Origin::kTemplate);
      column += spaces;
    } else {
      out.append(character);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  }
  return out.finish();
}

Value format_map(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("format_map", arguments, {"mapping"}, 1);
  if (!given[0].is(Kind::kDict)) fail("format_map() needs a dict");
  std::vector<NamedValue> named;
  in.budget().take_memory(2 * sizeof(NamedValue) * given[0].dict->size);
  for (const Dict::Entry& entry : given[0].dict->all())
    if (entry.key.is_string()) named.push_back({entry.key.view_text(), entry.value});
  return format_braces(in, self, {{}, named});
}

}  // namespace string_method

std::span<const Builtin> string_methods() {
  using namespace string_method;
  static constexpr Builtin kTable[] = {
      {"capitalize", capitalize_method},
      {"casefold", lower},
      {"center", justify<Side::kBoth>},
      {"count", count},
      {"endswith", ends_with},
      {"expandtabs", expandtabs},
      {"find", find_method<false>},
      {"format", format_braces},
      {"format_map", format_map},
      {"index", index_method<false>},
      {"join", join_method},
      {"ljust", justify<Side::kRight>},
      {"lower", lower},
      {"lstrip", strip_method<Side::kLeft>},
      {"partition", partition<false>},
      {"removeprefix", remove_prefix},
      {"removesuffix", remove_suffix},
      {"replace", replace_method},
      {"rfind", find_method<true>},
      {"rindex", index_method<true>},
      {"rjust", justify<Side::kLeft>},
      {"rpartition", partition<true>},
      {"rsplit", split<true>},
      {"rstrip", strip_method<Side::kRight>},
      {"split", split<false>},
      {"splitlines", splitlines},
      {"startswith", starts_with},
      {"strip", strip_method<Side::kBoth>},
      {"swapcase", swapcase},
      {"title", title},
      {"upper", upper},
      {"zfill", zfill},
  };
  return kTable;
}

}  // namespace hearth::jinja
