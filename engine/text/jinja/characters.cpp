#include "engine/text/jinja/characters.h"

#include <array>

#include <utf8proc.h>

#include "engine/text/utf8.h"

namespace hearth::jinja {
namespace {

utf8proc_category_t category(char32_t code) {
  if (code > 0x10FFFF) return UTF8PROC_CATEGORY_CN;
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

std::string one(char32_t code) {
  std::string text;
  append_character(text, code);
  return text;
}

}  // namespace

Character character_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  const Utf8Step step = utf8_step(text.substr(at, 4));
  if (step.kind != Utf8Step::Kind::kCharacter) return {kNoCode, 1};
  char32_t code = first & (0xFFu >> (step.bytes + 1));
  for (std::size_t i = 1; i < step.bytes; ++i)
    code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
  return {code, step.bytes};
}

Character character_before(std::string_view text, std::size_t end) {
  for (std::size_t bytes = 1; bytes <= 4 && bytes <= end; ++bytes) {
    const auto byte = static_cast<unsigned char>(text[end - bytes]);
    if ((byte & 0xC0) == 0x80) continue;
    const Character found = character_at(text.substr(0, end), end - bytes);
    if (found.bytes == bytes) return found;
    break;
  }
  return {kNoCode, 1};
}

std::size_t count_characters(Budget& budget, std::string_view text) {
  Meter meter(budget);
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    meter.reach(at);
    at += character_at(text, at).bytes;
  }
  return count;
}

std::size_t byte_of_character(Budget& budget, std::string_view text, std::size_t index) {
  Meter meter(budget);
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) {
    meter.reach(at);
    at += character_at(text, at).bytes;
  }
  return at;
}

void append_character(std::string& text, char32_t code) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(count));
}

bool is_space(char32_t code) {
  if (code < 0x80) return (code >= 9 && code <= 13) || (code >= 0x1C && code <= 0x20);
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_line_break(char32_t code) {
  return (code >= 10 && code <= 13) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

bool is_alpha(char32_t code) {
  if (code < 0x80) return (code | 0x20) >= 'a' && (code | 0x20) <= 'z';
  const auto kind = category(code);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  return category(code) == UTF8PROC_CATEGORY_ND;
}

bool is_numeric(char32_t code) {
  const auto kind = category(code);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_upper(char32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z';
  return category(code) == UTF8PROC_CATEGORY_LU;
}

bool is_lower(char32_t code) {
  if (code < 0x80) return code >= 'a' && code <= 'z';
  return category(code) == UTF8PROC_CATEGORY_LL;
}

bool is_printable(char32_t code) {
  if (code < 0x80) return code >= 0x20 && code != 0x7F;
  switch (category(code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

std::string to_upper(char32_t code) {
  if (code == 0xDF) return "SS";  // the one common letter that becomes two
  return one(static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))));
}

std::string to_lower(char32_t code) {
  return one(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
}

std::string to_title(char32_t code) {
  if (code == 0xDF) return "Ss";
  return one(static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code))));
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    const Character last = character_before(text, text.size());
    if (!is_space(last.code)) break;
    text.remove_suffix(last.bytes);
  }
  return text;
}

}  // namespace hearth::jinja
