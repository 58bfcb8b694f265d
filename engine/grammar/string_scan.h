// Reads bytes as a part of a JSON string that begins between two characters. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::grammar {

struct StringScan {
  enum class Kind {
    kOpen,    // all bytes belong to the string
    kClosed,  // an unescaped quote ends it after `bytes` bytes, the quote included
    kBroken,  // no JSON string has these bytes
  };
  Kind kind = Kind::kBroken;
  std::size_t bytes = 0;
  std::uint32_t characters = 0;  // that begin in the bytes, the last one possibly cut
  std::u32string text;           // the whole characters
};

StringScan scan_string(std::string_view bytes);

}  // namespace hearth::grammar
