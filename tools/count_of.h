// Counts in sentences for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace hearth {

// "1 token", "2 tokens". REQUIRES: the plural of `noun` ends in s.
inline std::string count_of(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace hearth
