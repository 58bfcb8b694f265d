#include "tools/read_text.h"

#include <unistd.h>

#include "runtime/host/read_file.h"

namespace hearth {

Result<std::string> read_text_file(const std::filesystem::path& path) {
  return read_file(path, {.most_bytes = kMostTextBytes});
}

Result<std::string> read_standard_input() {
  return read_descriptor(STDIN_FILENO, "standard input", kMostTextBytes);
}

}  // namespace hearth
