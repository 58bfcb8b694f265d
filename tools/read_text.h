// Texts that a user names: a file, or what comes in.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/result.h"

namespace hearth {

// All of a file. Folders can be opened, too, but not read, which is an error like any other here.
Result<std::string> read_text_file(const std::filesystem::path& path);

Result<std::string> read_standard_input();

}  // namespace hearth
