#include "engine/weights/in_quotes.h"

#include <fmt/format.h>

namespace hearth {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string out = "'";
  for (const char c : text.substr(0, kLongest)) {
    if (c >= ' ' && c <= '~')
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  out += text.size() > kLongest ? "...'" : "'";
  return out;
}

}  // namespace hearth
