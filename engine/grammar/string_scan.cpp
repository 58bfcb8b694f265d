#include "engine/grammar/string_scan.h"

#include "engine/grammar/code_points.h"
#include "engine/grammar/lexer.h"

namespace hearth::grammar {
namespace {

// One whole character as it is spelt in a JSON string.
char32_t decode_character(std::string_view bytes) {
  if (bytes[0] != '\\') return to_code_points(bytes)[0];
  const auto hex = [&](std::size_t at) {
    return static_cast<char32_t>(std::stoul(std::string(bytes.substr(at, 4)), nullptr, 16));
  };
  switch (bytes[1]) {
    case 'b':
      return 8;
    case 'f':
      return 12;
    case 'n':
      return 10;
    case 'r':
      return 13;
    case 't':
      return 9;
    case 'u':
      if (bytes.size() == 12) return 0x10000 + ((hex(2) - 0xD800) << 10) + (hex(8) - 0xDC00);
      return hex(2);
    default:
      return static_cast<unsigned char>(bytes[1]);
  }
}

}  // namespace

// Asks the lexer, so that there is one definition of what a string is.
StringScan scan_string(std::string_view bytes) {
  static const ExpressionPool pool;
  // A new lexer for each call would cost more than the scan; a thread keeps its own.
  thread_local Lexer lexer(pool, {{Lexeme::Kind::kJsonString, kAnyText}}, 0);
  static constexpr LexemeId kString = 0;
  thread_local const LexState inside = lexer.next(lexer.start({&kString, 1}), '"');
  StringScan result;
  LexState state = inside;
  std::size_t character = 0;  // where the current one began
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (lexer.between_characters(state)) {
      character = i;
      if (bytes[i] != '"') ++result.characters;
    }
    state = lexer.next(state, static_cast<std::uint8_t>(bytes[i]));
    if (state == kDeadLexState) return result;
    if (lexer.accepts(state)) {
      result.kind = StringScan::Kind::kClosed;
      result.bytes = i + 1;
      return result;
    }
    if (lexer.between_characters(state))
      result.text += decode_character(bytes.substr(character, i + 1 - character));
  }
  result.kind = StringScan::Kind::kOpen;
  result.bytes = bytes.size();
  return result;
}

}  // namespace hearth::grammar
