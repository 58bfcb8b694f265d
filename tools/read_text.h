// Reads text from a file or from standard input.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/result.h"

namespace hearth {

// The whole file. A folder is an error.
Result<std::string> read_text_file(const std::filesystem::path& path);

Result<std::string> read_standard_input();

}  // namespace hearth
