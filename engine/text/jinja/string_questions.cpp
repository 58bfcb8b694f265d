// Methods of str that answer a question about all of its characters.
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/interpreter.h"

namespace hearth::jinja {
namespace string_question {

// Python's rule for most of them: not empty, and every character passes.
template <bool (*passes)(char32_t)>
Value all_pass(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("is...", arguments);
  const std::string_view text = self.view_text();
  Meter meter(in.budget());
  for (std::size_t at = 0; at < text.size();) {
    meter.reach(at);
    const Character next = character_at(text, at);
    if (next.code == kNoCode || !passes(next.code)) return Value::of(false);
    at += next.bytes;
  }
  return Value::of(!text.empty());
}

bool is_alnum(char32_t code) { return is_alpha(code) || is_numeric(code); }

// At least one letter, and none of the other case.
template <bool (*wanted)(char32_t), bool (*other)(char32_t)>
Value has_case(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("is...", arguments);
  const std::string_view text = self.view_text();
  Meter meter(in.budget());
  bool found = false;
  for (std::size_t at = 0; at < text.size();) {
    meter.reach(at);
    const Character next = character_at(text, at);
    if (other(next.code)) return Value::of(false);
    found |= wanted(next.code);
    at += next.bytes;
  }
  return Value::of(found);
}

Value is_title(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("istitle", arguments);
  const std::string_view text = self.view_text();
  Meter meter(in.budget());
  bool found = false, behind_letter = false;
  for (std::size_t at = 0; at < text.size();) {
    meter.reach(at);
    const Character next = character_at(text, at);
    const bool upper = is_upper(next.code), lower = is_lower(next.code);
    if ((upper && behind_letter) || (lower && !behind_letter)) return Value::of(false);
    behind_letter = upper || lower;
    found |= behind_letter;
    at += next.bytes;
  }
  return Value::of(found);
}

Value is_ascii(Interpreter& in, const Value& self, const Arguments& arguments) {
  bind_nothing("isascii", arguments);
  in.budget().handle_bytes(self.size);
  for (const char c : self.view_text())
    if (static_cast<unsigned char>(c) >= 0x80) return Value::of(false);
  return Value::of(true);
}

Value is_printable_text(Interpreter& in, const Value& self, const Arguments& arguments) {
  return self.size == 0 ? Value::of(true) : all_pass<is_printable>(in, self, arguments);
}

Value is_identifier(Interpreter& in, const Value& self, const Arguments& arguments) {
  const bool digit_first = self.size > 0 && is_decimal(character_at(self.view_text(), 0).code);
  return digit_first ? Value::of(false) : all_pass<is_word>(in, self, arguments);
}

}  // namespace string_question

std::span<const Builtin> string_questions() {
  using namespace string_question;
  static constexpr Builtin kTable[] = {
      {"isalnum", all_pass<is_alnum>},
      {"isalpha", all_pass<is_alpha>},
      {"isascii", is_ascii},
      {"isdecimal", all_pass<is_decimal>},
      {"isdigit", all_pass<is_decimal>},
      {"isidentifier", is_identifier},
      {"islower", has_case<is_lower, is_upper>},
      {"isnumeric", all_pass<is_numeric>},
      {"isprintable", is_printable_text},
      {"isspace", all_pass<is_space>},
      {"istitle", is_title},
      {"isupper", has_case<is_upper, is_lower>},
  };
  return kTable;
}

}  // namespace hearth::jinja
