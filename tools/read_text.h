// Reads the text that a command line names: a file, a pipe or standard input. A text of more than
// kMostTextBytes is an error, so that /dev/zero does not fill the memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/result.h"

namespace hearth {

// Some fifty novels of a thousand pages.
inline constexpr uint64_t kMostTextBytes = uint64_t{256} << 20;

// The whole file. A folder is an error.
Result<std::string> read_text_file(const std::filesystem::path& path);

Result<std::string> read_standard_input();

}  // namespace hearth
