#include "engine/text/jinja/text_tools.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/search.h"

namespace hearth::jinja {
namespace {

// The string with every character replaced by what `change` makes of it.
template <class Change>
Value map_characters(Heap& heap, const Value& string, Change change) {
  const std::string_view text = string.view_text();
  heap.budget().handle_bytes(text.size());
  TextBuilder out(heap);
  OriginCursor origin(string);
  std::string pending;  // characters of one origin
  Origin pending_origin = Origin::kTemplate;
  for (std::size_t at = 0; at < text.size();) {
    const Character next = character_at(text, at);
    const Origin here = origin.at(at);
    if (here != pending_origin || pending.size() > 4096) {
      out.append(pending, pending_origin);
      pending.clear();
      pending_origin = here;
    }
    if (next.code == kNoCode) {
      pending += text[at];
    } else {
      pending += change(next.code);
    }
    at += next.bytes;
  }
  out.append(pending, pending_origin);
  Value result = out.finish();
  result.markup = string.markup;
  return result;
}

std::string lower_of(char32_t code) {
  if (code < 0x80)
    return std::string(1, static_cast<char>(code >= 'A' && code <= 'Z' ? code + 32 : code));
  return to_lower(code);
}

std::string upper_of(char32_t code) {
  if (code < 0x80)
    return std::string(1, static_cast<char>(code >= 'a' && code <= 'z' ? code - 32 : code));
  return to_upper(code);
}

}  // namespace

Value strip(Heap& heap, const Value& string, const Value& characters, Side side) {
  const std::string_view text = string.view_text();
  std::string_view set;
  const bool white = !characters.given() || characters.is(Kind::kNone);
  if (!white) set = need_string(characters, "strip").view_text();
  const auto is_stripped = [&](std::string_view character, char32_t code) {
    if (white) return is_space(code);
    heap.budget().handle_bytes(set.size());
    return set.find(character) != set.npos;
  };
  std::size_t begin = 0, end = text.size();
  Meter meter(heap.budget());
  while (side != Side::kRight && begin < end) {
    meter.reach(begin);
    const Character next = character_at(text, begin);
    if (!is_stripped(text.substr(begin, next.bytes), next.code)) break;
    begin += next.bytes;
  }
  while (side != Side::kLeft && end > begin) {
    meter.reach(begin + (text.size() - end));
    const Character last = character_before(text, end);
    if (!is_stripped(text.substr(end - last.bytes, last.bytes), last.code)) break;
    end -= last.bytes;
  }
  return heap.slice(string, begin, end);
}

Value replace(Heap& heap, const Value& string, const Value& from, const Value& to,
              std::int64_t count) {
  const std::string_view text = string.view_text();
  if (count < 0) count = static_cast<std::int64_t>(text.size()) + 1;
  TextBuilder out(heap);
  std::size_t plain = 0;
  if (from.size == 0) {  // between all characters
    for (; count > 0; --count) {
      out.append(to);
      if (plain >= text.size()) break;
      const std::size_t bytes = character_at(text, plain).bytes;
      out.append_slice(string, plain, plain + bytes);
      plain += bytes;
    }
  } else {
    Finder finder(heap, from.view_text());
    for (; count > 0; --count) {
      const std::size_t at = finder.find(text, plain);
      if (at == Finder::npos) break;
      out.append_slice(string, plain, at);
      out.append(to);
      plain = at + from.size;
    }
    if (plain == 0) return string;
  }
  out.append_slice(string, plain, text.size());
  Value result = out.finish();
  result.markup = string.markup;
  return result;
}

Value to_upper(Heap& heap, const Value& string) { return map_characters(heap, string, upper_of); }

Value to_lower(Heap& heap, const Value& string) { return map_characters(heap, string, lower_of); }

Value capitalize(Heap& heap, const Value& string) {
  bool first = true;
  return map_characters(heap, string, [&](char32_t code) {
    return std::exchange(first, false) ? to_title(code) : lower_of(code);
  });
}

Value join(Heap& heap, const Value& separator, std::span<const Value> strings) {
  TextBuilder out(heap);
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (i > 0) out.append(separator);
    out.append(strings[i]);
  }
  return out.finish();
}

std::vector<Value> split_lines(Heap& heap, const Value& string, bool keep_ends) {
  const std::string_view text = string.view_text();
  Meter meter(heap.budget());
  std::vector<Value> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    meter.reach(at);
    const Character next = character_at(text, at);
    if (!is_line_break(next.code)) {
      at += next.bytes;
      continue;
    }
    std::size_t behind = at + next.bytes;
    if (next.code == U'\r' && behind < text.size() && text[behind] == '\n') ++behind;
    heap.budget().step();
    heap.budget().take_memory(sizeof(Value));
    lines.push_back(heap.slice(string, begin, keep_ends ? behind : at));
    begin = at = behind;
  }
  if (begin < text.size()) lines.push_back(heap.slice(string, begin, text.size()));
  return lines;
}

Value pad(Heap& heap, const Value& string, std::int64_t width, const Value& fill, Side side) {
  const auto size = static_cast<std::int64_t>(count_characters(heap.budget(), string.view_text()));
  if (width <= size) return string;
  const std::int64_t room = width - size;
  // Centring leaves the odd character on the left where the width is odd.
  const std::int64_t left = side == Side::kLeft    ? room
                            : side == Side::kRight ? 0
                                                   : room / 2 + (room & width & 1);
  TextBuilder out(heap);
  for (std::int64_t i = 0; i < left; ++i) out.append(fill);
  out.append(string);
  for (std::int64_t i = left; i < room; ++i) out.append(fill);
  Value result = out.finish();
  result.markup = string.markup;
  return result;
}

Value need_string(const Value& value, std::string_view callee) {
  fail_if_undefined(value);
  if (!value.is_string())
    fail(fmt::format("{}() needs a string, not a value of type '{}'", callee, type_name(value)));
  return value;
}

std::int64_t need_integer(const Value& value, std::string_view callee) {
  fail_if_undefined(value);
  if (!value.is_integer())
    fail(fmt::format("{}() needs an integer, not a value of type '{}'", callee, type_name(value)));
  return value.as_integer();
}

std::int64_t integer_or(const Value& value, std::int64_t standard, std::string_view callee) {
  return !value.given() || value.is(Kind::kNone) ? standard : need_integer(value, callee);
}

}  // namespace hearth::jinja
