// Filters that make text of their input.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/text/jinja/access.h"
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/format.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/print.h"
#include "engine/text/jinja/text_tools.h"

namespace hearth::jinja {
namespace text_filter {

Value upper(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("upper", arguments);
  return to_upper(in.heap(), text_of(in.heap(), self));
}

Value lower(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("lower", arguments);
  return to_lower(in.heap(), text_of(in.heap(), self));
}

Value capitalize_filter(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("capitalize", arguments);
  return capitalize(in.heap(), text_of(in.heap(), self));
}

Value title(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("title", arguments);
  Heap& heap = in.heap();
  TextBuilder out(heap);
  bool starts_word = true;
  const Value text = text_of(heap, self);
  for (const Value& character : iterate(heap, text)) {
    out.append(starts_word ? to_upper(heap, character) : to_lower(heap, character));
    const char32_t code = character_at(character.view_text(), 0).code;
    starts_word =
        is_space(code) || (code < 0x80 && std::string_view("-({[<").find(static_cast<char>(code)) !=
                                              std::string_view::npos);
  }
  return out.finish();
}

Value trim(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("trim", arguments, {"chars"});
  return strip(in.heap(), text_of(in.heap(), self), given[0], Side::kBoth);
}

Value replace_filter(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<3> given = bind("replace", arguments, {"old", "new", "count"}, 2);
  Heap& heap = in.heap();
  Value result = replace(heap, text_of(heap, self), text_of(heap, given[0]),
                         text_of(heap, given[1]), integer_or(given[2], -1, "replace"));
  result.markup = false;
  return result;
}

Value string(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("string", arguments);
  return text_of(in.heap(), self);
}

Value safe(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("safe", arguments);
  Value result = text_of(in.heap(), self);
  result.markup = true;
  return result;
}

Value escape(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("escape", arguments);
  const Value text = text_of(in.heap(), self);
  return text.markup ? text : escaped(in.heap(), text);
}

Value force_escape(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("forceescape", arguments);
  return escaped(in.heap(), text_of(in.heap(), self));
}

Value format(Interpreter& in, const Value& self, const Arguments& arguments) {
  Heap& heap = in.heap();
  const Value pattern = text_of(heap, self);
  if (arguments.named.empty())
    return format_percent(heap, pattern, heap.tuple(arguments.positional));
  if (!arguments.positional.empty()) fail("format() takes arguments by place or by name, not both");
  const Value named = heap.dict(arguments.named.size());
  for (const NamedValue& each : arguments.named)
    heap.append(*named.dict, Value::borrowed(each.name), each.value);
  return format_percent(heap, pattern, named);
}

Value indent(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<3> given = bind("indent", arguments, {"width", "first", "blank"});
  Heap& heap = in.heap();
  const Value text = need_string(self, "indent");
  Value margin = Value::borrowed(" ");
  if (given[0].is_string()) {
    margin = given[0];
  } else {
    margin = pad(heap, Value::borrowed(""), integer_or(given[0], 4, "indent"), Value::borrowed(" "),
                 Side::kLeft);
  }
  // A last empty line counts too: Jinja appends a line break before it splits.
  std::vector<Value> lines = split_lines(heap, text);
  const bool ends_line =
      text.size == 0 || is_line_break(character_before(text.view_text(), text.size).code);
  if (ends_line) lines.push_back(Value::borrowed(""));
  TextBuilder out(heap);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n", Origin::kTemplate);
    const bool is_indented = i == 0 ? is_true(given[1]) : lines[i].size > 0 || is_true(given[2]);
    if (is_indented) out.append(margin);
    out.append(lines[i]);
  }
  Value result = out.finish();
  result.markup = text.markup;
  return result;
}

Value center(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("center", arguments, {"width"});
  return pad(in.heap(), text_of(in.heap(), self), integer_or(given[0], 80, "center"),
             Value::borrowed(" "), Side::kBoth);
}

Value truncate(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<4> given = bind("truncate", arguments, {"length", "killwords", "end", "leeway"});
  Heap& heap = in.heap();
  const Value text = need_string(self, "truncate");
  const std::int64_t length = integer_or(given[0], 255, "truncate");
  const Value end = given[2].given() ? need_string(given[2], "truncate") : Value::borrowed("...");
  const std::int64_t leeway = integer_or(given[3], 5, "truncate");
  const auto end_length =
      static_cast<std::int64_t>(count_characters(heap.budget(), end.view_text()));
  if (length < end_length || leeway < 0) fail("truncate() needs a longer length");
  const std::int64_t text_length = *length_of(heap, text);
  if (text_length <= length || text_length - length <= leeway) return text;
  const std::size_t kept_bytes = byte_of_character(heap.budget(), text.view_text(),
                                                   static_cast<std::size_t>(length - end_length));
  Value kept = heap.slice(text, 0, kept_bytes);
  if (!is_true(given[1])) {
    heap.budget().handle_bytes(kept.size);
    const std::size_t space = kept.view_text().rfind(' ');
    if (space != std::string_view::npos) kept = heap.slice(kept, 0, space);
  }
  const Value parts[] = {kept, end};
  return join(heap, Value::borrowed(""), parts);
}

Value word_count(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("wordcount", arguments);
  const Value value = text_of(in.heap(), self);
  const std::string_view text = value.view_text();
  Meter meter(in.budget());
  std::int64_t count = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    meter.reach(at);
    const Character next = character_at(text, at);
    const bool is_inside = next.code != kNoCode && is_word(next.code);
    if (is_inside && !inside) ++count;
    inside = is_inside;
    at += next.bytes;
  }
  return Value::of(count);
}

void append_quoted(TextBuilder& out, const Value& string, bool in_query) {
  OriginCursor origin(string);
  const std::string_view text = string.view_text();
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos ||
                       (c == '/' && !in_query);
    if (plain) {
      out.append({&c, 1}, origin.at(at));
    } else if (c == ' ' && in_query) {
      out.append("+", origin.at(at));
    } else {
      out.append(fmt::format("%{:02X}", static_cast<unsigned char>(c)), origin.at(at));
    }
  }
}

Value url_encode(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("urlencode", arguments);
  Heap& heap = in.heap();
  TextBuilder out(heap);
  const bool is_list = self.is_sequence() || self.is(Kind::kDict) || self.is(Kind::kView) ||
                       self.is(Kind::kIterator);
  if (!is_list) {
    append_quoted(out, text_of(heap, self), false);
    return out.finish();
  }
  std::span<const Value> pairs;
  if (self.is(Kind::kDict)) {
    Value view = Value::of(Kind::kView);
    view.view = heap.make(View{View::Part::kItems, self.dict});
    pairs = iterate(heap, view);
  } else {
    pairs = iterate(heap, self);
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!pairs[i].is_sequence() || pairs[i].list->size != 2)
      fail("urlencode() needs pairs of names and values");
    if (i > 0) out.append("&", Origin::kTemplate);
    append_quoted(out, text_of(heap, pairs[i].list->items[0]), true);
    out.append("=", Origin::kTemplate);
    append_quoted(out, text_of(heap, pairs[i].list->items[1]), true);
  }
  return out.finish();
}

// Without <tags> and <!-- comments -->, all of one origin.
Value without_tags(Heap& heap, std::string_view text, Origin origin) {
  TextBuilder result(heap);
  while (!text.empty()) {
    const std::size_t open = text.find('<');
    result.append(text.substr(0, open), origin);
    if (open == text.npos) break;
    text.remove_prefix(open);
    const bool is_comment = text.starts_with("<!--");
    const std::size_t close = is_comment ? text.find("-->", 4) : text.find('>');
    if (close == text.npos) {
      result.append(text, origin);
      break;
    }
    heap.budget().handle_bytes(close);
    text.remove_prefix(close + (is_comment ? 3 : 1));
  }
  return result.finish();
}

Value strip_tags(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("striptags", arguments);
  Heap& heap = in.heap();
  const Value text = text_of(heap, self);
  const Origin origin = text.has_input() ? Origin::kInput : Origin::kTemplate;
  Value result = without_tags(heap, text.view_text(), origin);
  const Value words =
      find_method(result, "split")->run(in, result, Arguments{});  // joins runs of white space
  result = join(heap, Value::borrowed(" ", origin), words.list->all());
  constexpr std::pair<std::string_view, std::string_view> kEntities[] = {
      {"&lt;", "<"},  {"&gt;", ">"},        {"&quot;", "\""}, {"&#34;", "\""},
      {"&#39;", "'"}, {"&nbsp;", "\u00a0"}, {"&amp;", "&"}};
  for (const auto& [entity, character] : kEntities)
    result = replace(heap, result, Value::borrowed(entity), Value::borrowed(character, origin), -1);
  return result;
}

Value file_size(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound<1> given = bind("filesizeformat", arguments, {"binary"});
  fail_if_undefined(self);
  if (!self.is_number()) fail("filesizeformat() needs a number");
  const bool binary = is_true(given[0]);
  const double base = binary ? 1024 : 1000;
  double size = self.as_number();
  const Origin origin = self.input ? Origin::kInput : Origin::kTemplate;
  if (size == 1) return in.heap().string("1 Byte", origin);
  if (size < base) return in.heap().string(fmt::format("{:.0f} Bytes", std::trunc(size)), origin);
  const std::string_view units = binary ? "KMGTPEZY" : "kMGTPEZY";
  std::size_t unit = 0;
  for (size /= base; size >= base && unit + 1 < units.size(); ++unit) size /= base;
  return in.heap().string(fmt::format("{:.1f} {}{}B", size, units[unit], binary ? "i" : ""),
                          origin);
}

}  // namespace text_filter

std::span<const Builtin> text_filters() {
  using namespace text_filter;
  static constexpr Builtin kTable[] = {
      {"capitalize", capitalize_filter},
      {"center", center},
      {"e", escape},
      {"escape", escape},
      {"filesizeformat", file_size},
      {"forceescape", force_escape},
      {"format", format},
      {"indent", indent},
      {"lower", lower},
      {"replace", replace_filter},
      {"safe", safe},
      {"string", string},
      {"striptags", strip_tags},
      {"title", title},
      {"trim", trim},
      {"truncate", truncate},
      {"upper", upper},
      {"urlencode", url_encode},
      {"wordcount", word_count},
  };
  return kTable;
}

}  // namespace hearth::jinja
