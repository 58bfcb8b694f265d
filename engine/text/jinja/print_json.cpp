#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/compare.h"
#include "engine/text/jinja/print.h"

namespace hearth::jinja {
namespace {

class JsonPrinter {
 public:
  JsonPrinter(Heap& heap, const JsonStyle& style, TextBuilder& out)
      : heap_(heap), style_(style), out_(out) {}

  void value(const Value& value, int level) {
    heap_.budget().step();
    const Origin origin = value.input ? Origin::kInput : Origin::kTemplate;
    switch (value.kind) {
      case Kind::kNone:
        return out_.append("null", origin);
      case Kind::kBool:
        return out_.append(value.boolean ? "true" : "false", origin);
      case Kind::kInt:
        return out_.append(fmt::format("{}", value.integer), origin);
      case Kind::kFloat:
        return out_.append(number(value.number), origin);
      case Kind::kString:
        return string(value);
      case Kind::kList:
      case Kind::kTuple:
        return list(value.list->all(), level);
      case Kind::kDict:
        return dict(*value.dict, level);
      default:
        fail(fmt::format("a value of type '{}' cannot be written as JSON", type_name(value)));
    }
  }

 private:
  static std::string number(double value) {
    const std::string text = float_text(value);
    if (text == "nan") return "NaN";
    if (text == "inf") return "Infinity";
    if (text == "-inf") return "-Infinity";
    return text;
  }

  void break_line(int level) {
    out_.append("\n", kFrame);
    for (int i = 0; i < level; ++i) out_.append(style_.indent, kFrame);
  }

  // The separator in front of an item, or the opening of the first one.
  void before(bool first, int level) {
    if (!first) out_.append(style_.item_separator, kFrame);
    if (style_.is_spread) break_line(level);
  }

  void list(std::span<const Value> items, int level) {
    const Nested nested(heap_.budget());
    out_.append("[", kFrame);
    for (std::size_t i = 0; i < items.size(); ++i) {
      before(i == 0, level + 1);
      value(items[i], level + 1);
    }
    if (style_.is_spread && !items.empty()) break_line(level);
    out_.append("]", kFrame);
  }

  void dict(const Dict& dict, int level) {
    const Nested nested(heap_.budget());
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.all()) entries.push_back(&entry);
    if (style_.sorted)
      std::ranges::stable_sort(entries, [&](const Dict::Entry* a, const Dict::Entry* b) {
        return order(heap_, a->key, b->key) < 0;
      });
    out_.append("{", kFrame);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      before(i == 0, level + 1);
      key(entries[i]->key);
      out_.append(style_.key_separator, kFrame);
      value(entries[i]->value, level + 1);
    }
    if (style_.is_spread && !entries.empty()) break_line(level);
    out_.append("}", kFrame);
  }

  void key(const Value& key) {
    if (key.is_string()) return string(key);
    if (!key.is_number() && !key.is(Kind::kNone))
      fail(fmt::format("a value of type '{}' cannot be a key in JSON", type_name(key)));
    out_.append("\"", kFrame);
    value(key, 0);
    out_.append("\"", kFrame);
  }

  static std::string escape(char32_t c) {
    switch (c) {
      case U'"':
        return "\\\"";
      case U'\\':
        return "\\\\";
      case U'\n':
        return "\\n";
      case U'\r':
        return "\\r";
      case U'\t':
        return "\\t";
      case U'\b':
        return "\\b";
      case U'\f':
        return "\\f";
      default:
        break;
    }
    const auto unit = [](char32_t code) {
      return fmt::format("\\u{:04x}", static_cast<unsigned>(code));
    };
    if (c < 0x10000) return unit(c);
    return unit(0xD800 + ((c - 0x10000) >> 10)) + unit(0xDC00 + ((c - 0x10000) & 0x3FF));
  }

  void string(const Value& value) {
    const std::string_view text = value.view_text();
    Meter meter(heap_.budget());
    OriginCursor origin(value);
    std::size_t plain = 0;  // start of what needs no escapes
    out_.append("\"", kFrame);
    for (std::size_t at = 0; at < text.size();) {
      meter.reach(at);
      const Character next = character_at(text, at);
      const bool special = next.code < 0x20 || next.code == U'"' || next.code == U'\\' ||
                           (style_.ascii && next.code > 0x7F && next.code != kNoCode);
      if (special) {
        out_.append_slice(value, plain, at);
        out_.append(escape(next.code), origin.at(at));
        plain = at + next.bytes;
      }
      at += next.bytes;
    }
    out_.append_slice(value, plain, text.size());
    out_.append("\"", kFrame);
  }

  Heap& heap_;
  const JsonStyle& style_;
  TextBuilder& out_;
};

}  // namespace

void print_json(Heap& heap, const Value& value, const JsonStyle& style, TextBuilder& out) {
  JsonPrinter(heap, style, out).value(value, 0);
}

}  // namespace hearth::jinja
