// What the two ways to format have in common: how one value is to look, and how it is written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/text/jinja/heap.h"
#include "engine/text/jinja/text_builder.h"
#include "engine/text/jinja/value.h"

namespace hearth::jinja {

inline constexpr std::int64_t kMaxFieldWidth = 100'000;

// How one value is to look.
struct FieldLook {
  char type = 's';  // as in both languages; 'd', 'f', 'g', 'x', ...
  char align = 0;   // '<', '>', '^', '=' (zeros between sign and digits), 0: by type
  char sign = '-';  // '+', ' ' or '-': only where negative
  std::string fill = " ";
  bool alternate = false, thousands = false;
  std::int64_t width = 0, precision = -1;
};

bool is_float_type(char type);
bool is_integer_type(char type);

// Fails if the field is too wide.
void check_width(const FieldLook& look);
void append_number(Budget& budget, TextBuilder& out, const Value& value, const FieldLook& look);
void append_text(Heap& heap, TextBuilder& out, Value text, const FieldLook& look);

// A position in a pattern.
struct PatternCursor {
  std::string_view text;
  std::size_t at = 0;

  bool done() const { return at >= text.size(); }
  char now() const { return done() ? '\0' : text[at]; }
  bool take(char c) {
    if (now() != c || done()) return false;
    ++at;
    return true;
  }
  std::optional<std::int64_t> number() {
    if (now() < '0' || now() > '9') return {};
    std::int64_t value = 0;
    for (; now() >= '0' && now() <= '9'; ++at)
      value = std::min<std::int64_t>(value * 10 + (now() - '0'), kMaxFieldWidth * 10);
    return value;
  }
};

}  // namespace hearth::jinja
