// Replaces a file atomically: the new contents are written to a temporary file and renamed over it.
#pragma once

#include <filesystem>
#include <string_view>

#include "runtime/result.h"

namespace hearth {

// Creates the folder if missing. On failure the old file is unchanged.
Status write_atomically(const std::filesystem::path& path, std::string_view contents);

}  // namespace hearth
