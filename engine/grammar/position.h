// Where in the bytes of a lexeme the lexer is, packed into 32 bits: a kind, and for characters that
// are not complete yet what is known of them.
#pragma once

#include <cstdint>

namespace hearth::grammar::position {

enum class Kind : std::uint32_t {
  kGap,         // white space before the lexeme; value: how much
  kRaw,         // between two characters
  kRawUtf8,     // inside a character
  kRawTail,     // inside a character that makes no difference any more; value: bytes missing
  kMark,        // before the mark of a control token
  kText,        // inside a string, between two characters
  kTextUtf8,    // inside a string, inside a character
  kEscape,      // after the backslash
  kHex,         // after \u; value: digits << 16 | number
  kHighDone,    // after the first half of a surrogate pair; value: its ten bits
  kHighEscape,  // ... and a backslash
  kLowHex,      // ... and a u; value: digits << 22 | high << 12 | number
  kTextTail,    // inside a string, as kRawTail
  kDone,        // after the closing quote
};

inline constexpr std::uint32_t kCountedBit = 1u << 31;

constexpr std::uint32_t make(Kind kind, std::uint32_t value = 0) {
  return static_cast<std::uint32_t>(kind) << 27 | value;
}
constexpr Kind kind(std::uint32_t position) {
  return static_cast<Kind>((position & ~kCountedBit) >> 27);
}
constexpr std::uint32_t value(std::uint32_t position) { return position & ((1u << 27) - 1); }

// Of a UTF-8 sequence: its length, how many bytes are missing, and the bits so far.
constexpr std::uint32_t utf8(std::uint32_t length, std::uint32_t missing, std::uint32_t bits) {
  return length << 24 | missing << 22 | bits;
}

}  // namespace hearth::grammar::position
