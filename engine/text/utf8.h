// UTF-8 byte by byte, for text that may be cut or invalid anywhere. Pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace hearth {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

struct Utf8Step {
  enum class Kind {
    kCharacter,   // `bytes` are one valid character
    kBroken,      // `bytes` can never become one; Unicode replaces them by one U+FFFD
    kIncomplete,  // the text ends inside a character that is valid so far
  };
  Kind kind = Kind::kBroken;
  std::size_t bytes = 0;
};

// Classifies the beginning of `text`. REQUIRES: text is not empty.
inline Utf8Step utf8_step(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {Utf8Step::Kind::kCharacter, 1};
  std::size_t length = 0;
  unsigned low = 0x80, high = 0xBF;  // of the second byte: no overlong forms or surrogates
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return {Utf8Step::Kind::kBroken, 1};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Utf8Step::Kind::kIncomplete, i};
    if (byte(i) < low || byte(i) > high) return {Utf8Step::Kind::kBroken, i};
    low = 0x80, high = 0xBF;
  }
  return {Utf8Step::Kind::kCharacter, length};
}

// The number of bytes at the start of `text` that are valid, whole characters.
inline std::size_t utf8_valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (step.kind != Utf8Step::Kind::kCharacter) break;
    at += step.bytes;
  }
  return at;
}

}  // namespace hearth
