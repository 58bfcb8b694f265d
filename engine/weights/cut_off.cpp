#include "engine/weights/cut_off.h"

#include <fmt/format.h>

namespace hearth {

std::string cut_off_message(std::uint64_t missing_bytes, bool at_least) {
  constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 44;
  if (missing_bytes > kLargestFile) return {};
  return fmt::format("the file is cut off: {}{} {} missing, so its download may be incomplete",
                     at_least ? "at least " : "", missing_bytes,
                     missing_bytes == 1 ? "byte is" : "bytes are");
}

}  // namespace hearth
